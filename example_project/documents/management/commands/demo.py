"""``manage.py demo``: a worker, a web server and real work, until Ctrl-C; or ``--once``, with a verdict."""

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from example_project.documents.children import ChildEnded
from example_project.documents.comparison import Report
from example_project.documents.database import DatabaseUnusable
from example_project.documents.demonstration import Demonstration, Result
from example_project.documents.ingest import STANDARD_LIBRARY, UnusableFolder
from example_project.documents.management.numbers import at_least_one
from example_project.documents.stopping import StopAsked, stop_on_signals
from example_project.documents.web import PortTaken

COMPLAINTS_SHOWN = 20
#: What a shell reports for a process that Ctrl-C ended.
STOPPED_EARLY = 130


class Command(BaseCommand):
    help = (
        "Migrate, make an admin account, start a web server and a worker, and have a folder of Python files analysed "
        "by jobs. Runs until Ctrl-C. With --once it compares the result with a plain loop over the same files and "
        "ends: status 0 only if nothing is lost and everything is right."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", nargs="?", type=Path, default=STANDARD_LIBRARY, help="default: %(default)s")
        parser.add_argument("--limit", type=at_least_one, help="take this many files of the folder at most")
        parser.add_argument("--once", action="store_true", help="end when all is done")
        parser.add_argument(
            "--concurrency", type=at_least_one, default=10, help="threads of the worker (default %(default)s)"
        )

    def handle(self, *args: Any, folder: Path, limit: int | None, once: bool, concurrency: int, **options: Any) -> None:
        try:
            with stop_on_signals():
                demonstration = Demonstration(folder, limit, concurrency, self.say)

                def stay(result: Result) -> None:
                    self.summarise(result.report)
                    if not once:
                        self.say("The worker and the web server go on. Ctrl-C stops everything.")
                        demonstration.run_on()

                result = demonstration.run(after=stay)
        except StopAsked:
            self.say("\nStopped: no process of the demo is left.")
            sys.exit(STOPPED_EARLY if once else 0)
        except (ChildEnded, DatabaseUnusable, UnusableFolder, PortTaken) as error:
            raise CommandError(str(error)) from error
        self.conclude(result)

    def say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()

    def summarise(self, report: Report) -> None:
        self.say(f"{'':12}{'files':>10}{'lines':>12}{'tokens':>12}")
        for name, totals in (("jobs", report.by_jobs), ("plain loop", report.by_plain_loop)):
            self.say(f"{name:12}{totals.files:>10,}{totals.lines:>12,}{totals.tokens:>12,}")
        self.say(
            f"{report.retried} jobs succeeded on a retry; {report.dead} dead letters for {report.broken} broken files"
        )
        for complaint in report.complaints[:COMPLAINTS_SHOWN]:
            self.say(f"WRONG: {complaint}")
        if len(report.complaints) > COMPLAINTS_SHOWN:
            self.say(f"WRONG: and {len(report.complaints) - COMPLAINTS_SHOWN} more")

    def conclude(self, result: Result) -> None:
        report = result.report
        self.say(
            f"demo: {report.completed} completed, {report.dead} dead, {report.lost} lost in {result.seconds:.1f} s"
        )
        if report.complaints or report.lost:
            sys.exit(1)
