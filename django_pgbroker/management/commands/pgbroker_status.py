"""Print how the broker stands: queues, workers, unknown job types. For people and for scripts; or watch it live."""

import json
from argparse import ArgumentTypeError, RawDescriptionHelpFormatter
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from django_pgbroker.conf import get_settings
from django_pgbroker.domain.durations import describe_age, describe_seconds
from django_pgbroker.domain.errors import ConfigurationError
from django_pgbroker.domain.presence import Presence, describe_queues
from django_pgbroker.management.columns import align_columns
from django_pgbroker.management.listing import write_moment
from django_pgbroker.operations.overview import (
    STALE_AFTER_SECONDS,
    Overview,
    QueueOverview,
    describe_count,
    name_unserved,
    read_overview,
)

try:
    from rich.console import Console

    from django_pgbroker.management.status_board import StatusBoard
except ModuleNotFoundError as missing:
    if missing.name is None or missing.name.partition(".")[0] != "rich":
        raise
    StatusBoard = None  # type: ignore[assignment, misc]

#: Seconds between two pictures of ``--watch``.
_WATCH_SECONDS = 2.0

JSON_HELP = """
--json prints one object, times in seconds, unknown figures as null (100001: more than 100,000):
  queues         list, longest wait first: name, oldest_pending_seconds, pending, running, scheduled, parked, blocked,
                 sampled_seconds_ago, is_stale, is_paused, paused_at, paused_by, pause_reason, resume_at,
                 ageing_seconds
  workers        list: id, name, presence (alive, draining, lost), heartbeat_seconds_ago, queues, concurrency, running,
                 hostname, process_id, version, started_seconds_ago, ordered_concurrency, paused_queues
  unknown_types  list: name, waiting (among the first jobs of each queue)

The text is columns parted by two spaces or more (awk -F '  +'). The exit status is 0 whenever the database answered.
"""


class Command(BaseCommand):
    """``manage.py pgbroker_status [--json | --watch [SECONDS]] [--database ALIAS]``."""

    help = "Shows queues (longest wait first), workers, and job types that no live worker takes."

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Add the description of the JSON to ``--help``."""
        parser = super().create_parser(prog_name, subcommand, epilog=JSON_HELP, **kwargs)
        parser.formatter_class = RawDescriptionHelpFormatter
        return parser

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")
        parser.add_argument(
            "--watch",
            nargs="?",
            type=_read_interval,
            const=_WATCH_SECONDS,
            metavar="SECONDS",
            help=f"a live board, drawn anew so often (default: {_WATCH_SECONDS:g}); Ctrl-C ends it; needs rich",
        )
        parser.add_argument("--database", help="alias of the database with the jobs (default: PGBROKER['DATABASE'])")

    def handle(self, *args: Any, **options: Any) -> None:
        """Read the overview and print it."""
        try:
            database = options["database"] or get_settings().database
            if options["watch"] is not None:
                self._watch(database, options["watch"], as_json=options["json"])
                return
            overview = read_overview(database)
        except ConfigurationError as error:
            raise CommandError(str(error)) from error
        except DatabaseError as error:
            raise CommandError(
                f"The database {database!r} did not answer ({str(error).strip()}). Is it up, and has "
                f"`manage.py migrate --database {database}` been run?"
            ) from error
        if options["json"]:
            self.stdout.write(json.dumps(_as_json(overview), indent=2, default=str))
        else:
            self.stdout.write("\n".join(_as_lines(overview)))

    def _watch(self, database: str, seconds: float, *, as_json: bool) -> None:
        if as_json or not self.stdout.isatty():
            raise CommandError("--watch draws on a terminal, for a person; for scripts there is --json without it")
        if StatusBoard is None:
            raise CommandError("--watch needs the package rich: pip install 'django-pgbroker[watch]', or rich itself")
        StatusBoard(database, seconds, Console()).run()


def _read_interval(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.2 <= seconds <= 3_600:
        raise ArgumentTypeError(f"{text!r} is no interval: a number of seconds from 0.2 to 3600")
    return seconds


def _as_json(overview: Overview) -> dict[str, Any]:
    return {
        "queues": [asdict(queue) | _judgements(queue) for queue in overview.queues],
        "workers": [asdict(worker) for worker in overview.workers],
        "unknown_types": [asdict(unknown) for unknown in overview.unknown_types],
    }


def _judgements(queue: QueueOverview) -> dict[str, bool]:
    return {"is_stale": queue.is_stale, "is_paused": queue.is_paused}


def _as_lines(overview: Overview) -> list[str]:
    lines = _queue_lines(overview)
    lines += ["", *_worker_lines(overview)]
    if overview.unknown_types:
        rows = [(unknown.name, f"{unknown.waiting:,}") for unknown in overview.unknown_types]
        lines += ["", "No live worker knows these job types; start one whose code registers them:"]
        lines += align_columns(("job type", "waiting"), rows)
    return lines


def _queue_lines(overview: Overview) -> list[str]:
    if not overview.queues:
        return ["No queue yet: the first one appears with the first job, or is declared in settings.PGBROKER."]
    head = ("queue", "oldest pending", "pending", "running", "scheduled", "parked", "blocked", "sampled", "state")
    unserved = name_unserved(overview.queues, overview.workers)
    lines = align_columns(head, [_queue_row(queue, is_unserved=queue.name in unserved) for queue in overview.queues])
    if any(queue.is_stale for queue in overview.queues):
        lines.append(
            f"Warning: figures marked * are missing or older than {STALE_AFTER_SECONDS:.0f} s; "
            "is a worker or pgbroker_reaper running?"
        )
    return lines


def _queue_row(queue: QueueOverview, *, is_unserved: bool) -> tuple[str, ...]:
    depths = (queue.pending, queue.running, queue.scheduled, queue.parked, queue.blocked)
    oldest, sampled = queue.oldest_pending_seconds, queue.sampled_seconds_ago
    return (
        queue.name,
        "-" if oldest is None else describe_seconds(oldest),
        *(describe_count(depth) for depth in depths),
        ("never" if sampled is None else describe_age(sampled)) + (" *" if queue.is_stale else ""),
        "no worker" if is_unserved and not queue.is_paused else _pause_words(queue),
    )


def _pause_words(queue: QueueOverview) -> str:
    if not queue.is_paused:
        return "active"
    who = f" by {queue.paused_by}" if queue.paused_by else ""
    why = f": {queue.pause_reason}" if queue.pause_reason else ""
    until = f" until {write_moment(queue.resume_at)}" if queue.resume_at else ""
    return f"paused{who}{until}{why}"


def _worker_lines(overview: Overview) -> list[str]:
    if not any(worker.presence is not Presence.LOST for worker in overview.workers):
        lines = ["No live worker: nothing is being run. Start one with `manage.py pgbroker_worker`."]
    else:
        lines = []
    if overview.workers:
        rows = [
            (
                str(worker.id),
                worker.name,
                worker.presence.value,
                describe_age(worker.heartbeat_seconds_ago),
                f"{worker.running}/{worker.concurrency}",
                describe_queues(worker.queues),
                f"{worker.hostname}:{worker.process_id}",
                describe_seconds(worker.started_seconds_ago),
            )
            for worker in overview.workers
        ]
        lines += align_columns(
            ("id", "worker", "presence", "heartbeat", "running", "queues", "process", "up for"), rows
        )
    return lines
