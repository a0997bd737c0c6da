"""``manage.py pgbroker_run JOB_ID``: run one job here, in the foreground, where breakpoints work."""

import sys
from argparse import ArgumentParser
from typing import Any

import psycopg
from django.core.management.base import BaseCommand, CommandError
from django.db import Error

from django_pgbroker.conf import get_settings
from django_pgbroker.domain.errors import PgbrokerError
from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.management.start import check_database
from django_pgbroker.runtime.connections import describe_error
from django_pgbroker.worker.options import QueueShare, WorkerOptions
from django_pgbroker.worker.single_run import CannotClaim, Ended, SingleRun

#: The exit status when the job could not be claimed.
NOT_CLAIMED = 2


class Command(BaseCommand):
    """One job, in the main thread."""

    help = (
        "Run one pending job in the foreground, in the main thread, so that breakpoint() works. It is claimed and "
        "recorded like in any worker; time-outs are not enforced. Status: 0 completed, 1 not completed, 2 not claimed."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("job_id", type=int, metavar="JOB_ID")
        parser.add_argument("--now", action="store_true", help="run a scheduled job before it is due")
        parser.add_argument("--database", help="alias of the database with the jobs (default: PGBROKER['DATABASE'])")

    def handle(self, *, job_id: int, now: bool, database: str | None, **_: Any) -> None:
        """Run the job.

        Raises:
            CommandError: the job cannot be claimed (status 2), or the database cannot be used.
        """
        alias = database or get_settings().database
        # the queue is that of the job, found out when it is looked up
        options = WorkerOptions((QueueShare("default"),), concurrency=1, database=alias)
        try:
            check_database(alias)
            ended = SingleRun(job_id, options, ignores_due_time=now, tell=self._tell).run()
        except CannotClaim as error:
            raise CommandError(str(error), returncode=NOT_CLAIMED) from error
        except PgbrokerError as error:
            raise CommandError(str(error)) from error
        except (psycopg.Error, Error) as error:
            raise CommandError(f"the database cannot be used: {describe_error(error)}") from error
        self._show(job_id, ended)
        if not (ended.is_recorded and ended.verdict.outcome is Outcome.COMPLETED):
            sys.exit(1)

    def _tell(self, line: str) -> None:
        self.stderr.write(line)

    def _show(self, job_id: int, ended: Ended) -> None:
        verdict = ended.verdict
        seconds = verdict.run_microseconds / 1_000_000
        if verdict.error:
            self.stdout.write(verdict.error.traceback.rstrip())
        self.stdout.write(f"Job {job_id}: {verdict.outcome.label} after {seconds:.3f} s.")
        if verdict.reason:
            self.stdout.write(f"Reason: {verdict.reason}")
        if verdict.result is not None:
            self.stdout.write(f"Result: {verdict.result}")
        if not ended.is_recorded:
            self.stdout.write("That was not recorded: the claim was lost meanwhile, or the database did not answer.")
        if ended.state is not None:
            waits = ended.state is JobState.SCHEDULED and verdict.delay_seconds
            self.stdout.write(
                f"It is {ended.state.label} now" + (f", again in {verdict.delay_seconds:.1f} s." if waits else ".")
            )
