"""``manage.py pgbroker_bench``: figures of this machine, as ratios to a floor measured in the same run."""

import json
import sys
from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, NamedTuple

import psycopg
from django.core.management.base import BaseCommand, CommandError
from django.db import Error, connections

from django_pgbroker.bench.backlog import BATCH, measure_backlog
from django_pgbroker.bench.churn import measure_churn
from django_pgbroker.bench.drain import HANDLERS, measure_drain
from django_pgbroker.bench.enqueue import measure_enqueue
from django_pgbroker.bench.floor import floor_statements
from django_pgbroker.bench.idle import measure_idle
from django_pgbroker.bench.interrupts import sigterm_interrupts
from django_pgbroker.bench.latency import measure_latency
from django_pgbroker.bench.processes import measure_processes
from django_pgbroker.bench.report import Report
from django_pgbroker.conf import get_settings
from django_pgbroker.domain.errors import PgbrokerError

#: What a shell reports for a process that Ctrl-C ended.
_STOPPED = 130

_A_DAY = 86_400


class Option(NamedTuple):
    """An option with a number, and the bounds of what is possible."""

    default: float
    low: float
    high: float
    help: str


class Measurement(NamedTuple):
    """One thing to measure: what ``--help`` says of it, its options, and the function that does it."""

    help: str
    example: str
    options: dict[str, Option]
    run: Callable[..., Report]


_JOBS = Option(20_000, 100, 10_000_000, "jobs of one run")
_RUNS = Option(3, 1, 100, "interleaved pairs; the medians count")


def _drain(alias: str, *, processes: int, **options: Any) -> Report:
    if processes > 1:
        return measure_processes(alias, processes=processes, **options)
    return measure_drain(alias, **options)


MEASUREMENTS = {
    "enqueue": Measurement(
        "jobs enqueued one by one, beside the bare statement",
        "--jobs 20000 --runs 5",
        {"jobs": _JOBS, "runs": _RUNS},
        measure_enqueue,
    ),
    "drain": Measurement(
        "a full queue emptied by one worker process beside its floor, or by several beside one",
        "--jobs 20000 --processes 4 --json",
        {
            "jobs": _JOBS,
            "runs": _RUNS,
            "concurrency": Option(10, 1, 1_000, "slots of a worker"),
            "processes": Option(1, 1, 50, "worker processes; several are compared with one instead of the floor"),
        },
        _drain,
    ),
    "latency": Measurement(
        "from the commit of an enqueue to the start of its handler in an idle worker",
        "--jobs 200 --gap-seconds 1",
        {
            "jobs": Option(200, 1, 100_000, "jobs, one at a time"),
            "gap_seconds": Option(0.07, 0, 600, "mean pause before each, which varies from 2/7 to 12/7 of it"),
        },
        measure_latency,
    ),
    "backlog": Measurement(
        f"claims of {BATCH} jobs from a large queue, beside a small one",
        "--pending 10000000 --claims 300",
        {
            "pending": Option(1_000_000, BATCH, 100_000_000, "jobs in the large queue"),
            "small_pending": Option(10_000, BATCH, 100_000_000, "jobs in the small queue"),
            "claims": Option(300, 1, 100_000, "claims from each"),
        },
        measure_backlog,
    ),
    "churn": Measurement(
        "a long run at full speed: what tables, indexes and claims become",
        "--seconds 600 --old-snapshot-seconds 60",
        {
            "seconds": Option(600.0, 4, _A_DAY, "how long"),
            "old_snapshot_seconds": Option(0.0, 0, _A_DAY // 2, "how long a snapshot is held in the middle of it"),
        },
        measure_churn,
    ),
    "idle": Measurement(
        "memory, processor time and transactions of a worker without work; needs Linux",
        "--seconds 60",
        {"seconds": Option(60.0, 1, _A_DAY, "how long")},
        measure_idle,
    ),
}


class Command(BaseCommand):
    """Measures in a database of its own on the project's server, which is dropped afterwards."""

    help = (
        "Measure the broker in a database made for it and dropped, beside a floor measured in the same run. "
        "Example: manage.py pgbroker_bench drain --jobs 20000 --json. "
        "Each measurement has options of its own: manage.py pgbroker_bench drain --help"
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the measurements, each with its options."""
        measurements = parser.add_subparsers(dest="what", required=True, title="measurements", metavar="measurement")
        for what, measurement in MEASUREMENTS.items():
            example = f"Example: manage.py pgbroker_bench {what} {measurement.example}"
            one = measurements.add_parser(
                what, help=measurement.help, description=f"Measure {measurement.help}. {example}"
            )
            for name, option in measurement.options.items():
                one.add_argument(
                    f"--{name.replace('_', '-')}",
                    type=_number(option),
                    default=option.default,
                    help=f"{option.help} (default: {option.default:,g})",
                )
            for common in ("--settings", "--pythonpath"):
                # Django has read them before; they may stand behind the measurement too
                one.add_argument(common, default=SUPPRESS, help=SUPPRESS)
            one.add_argument("--json", action="store_true", help="print one JSON object, and progress to stderr")
            one.add_argument("--database", help="alias whose server is used (default: PGBROKER['DATABASE'])")
            if what == "drain":
                one.add_argument("--explain", action="store_true", help="print the SQL of the floor first")
                one.add_argument(
                    "--handler",
                    choices=HANDLERS,
                    default="noop",
                    help="what the jobs do: nothing in a thread, on the event loop, in a child process or within all "
                    "ready middleware; or a read and a write by Django's ORM, each for itself or in a transactional "
                    "job (default: noop)",
                )
            if what == "latency":
                one.add_argument(
                    "--no-listen", action="store_false", dest="listens", help="without notifications: polling alone"
                )

    def handle(self, *, what: str, **options: Any) -> None:
        """Measure and print.

        Raises:
            CommandError: the options or the database cannot be used, or what was measured is worth nothing.
        """
        alias = options["database"] or get_settings().database
        own = {name: options[name] for name in (*MEASUREMENTS[what].options, "handler", "listens") if name in options}
        _check(what, own, alias, explain=options.get("explain", False))
        if options.get("explain"):
            for name, text in floor_statements().items():
                self.stdout.write(f"-- {name}\n{text};\n")
        output = self.stderr if options["json"] else self.stdout

        def tell(line: str) -> None:
            output.write(line)
            output.flush()

        tell(f"{what}: in a database made for it, which takes a few seconds")
        try:
            with sigterm_interrupts():
                report = MEASUREMENTS[what].run(alias, **own, tell=tell)
        except PgbrokerError as error:
            raise CommandError(str(error)) from error
        except (Error, psycopg.Error) as error:
            raise CommandError(f"the database cannot be used: {error}".strip()) from error
        except KeyboardInterrupt:
            tell("stopped; the scratch database is gone")
            sys.exit(_STOPPED)
        if options["json"]:
            self.stdout.write(json.dumps({"measurement": what, **asdict(report)}))
            return
        self.stdout.write(f"{what}: {report.summary()}; PostgreSQL {report.server_version}, {report.cpus} processors")


def _number(option: Option) -> Callable[[str], float]:
    """Read a number within the bounds; a whole one where these are."""
    kind = float if isinstance(option.default, float) else int

    def read(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            raise ArgumentTypeError(f"must be a {'whole ' if kind is int else ''}number, not {text!r}") from None
        if not option.low <= value <= option.high:
            raise ArgumentTypeError(f"must be from {option.low:,} to {option.high:,}, not {text}")
        return value

    return read


def _check(what: str, own: dict[str, Any], alias: str, *, explain: bool) -> None:
    """What no single option can tell."""
    if alias not in connections:
        raise CommandError(f"there is no database {alias!r}; choose one of {', '.join(connections)}")
    if connections[alias].vendor != "postgresql":
        raise CommandError(f"the database {alias!r} is no PostgreSQL; name another one by --database")
    if explain and (own["handler"] != "noop" or own["processes"] > 1):
        raise CommandError("--explain prints the SQL of the floor of one process with --handler noop; drop the others")
    if what == "churn" and own["old_snapshot_seconds"] > own["seconds"] / 2:
        raise CommandError(
            "--old-snapshot-seconds may be half of --seconds at most: the rest is what it is compared with"
        )
