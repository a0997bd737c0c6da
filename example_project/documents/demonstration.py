"""The course of the demo: children, feeding, waiting, comparing. Driven by the command ``demo``."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from django.conf import settings
from django.db import Error

from example_project.documents.account import USERNAME, open_account
from example_project.documents.children import ChildEnded, Children
from example_project.documents.comparison import Report, compare
from example_project.documents.database import DatabaseStopped, database_answers, migrate
from example_project.documents.ingest import broken_sources, find_sources, ingest, jobs_for
from example_project.documents.models import Batch
from example_project.documents.progress import Count, Display, count, display, live_jobs
from example_project.documents.stopping import Starter
from example_project.documents.web import choose_port, start_web_server

TICK_SECONDS = 0.25
#: Longer than a lease and the sweep after it: a killed worker's jobs come back before we give up.
STALL_SECONDS = 120


class Result(NamedTuple):
    """What the demo found, and how long the jobs took from the first enqueue to the end of the last one."""

    report: Report
    seconds: float


class Demonstration:
    """One run of the demo. Use :meth:`run` inside ``stop_on_signals()``."""

    def __init__(self, folder: Path, limit: int | None, concurrency: int, write: Callable[[str], object]) -> None:
        """Find the files.

        Args:
            folder: where the Python files are.
            limit: take this many of them at most.
            concurrency: threads of the worker.
            write: prints a line.

        Raises:
            UnusableFolder: there is no such folder.
        """
        self.folder = folder
        self.paths = [*find_sources(folder, limit), *broken_sources()]
        self.concurrency = concurrency
        self.write = write
        self.starter = Starter()

    def run(self, after: Callable[[Result], None]) -> Result:
        """Do everything, and call ``after`` with the result while the web server and the worker still run.

        Raises:
            StopAsked: a signal came.
            ChildEnded: the worker or the web server failed.
            PortTaken: the environment names a port that is in use.
            DatabaseUnusable: the database cannot be reached or migrated, or was stopped meanwhile.
        """
        choose_port(settings.PORT)  # a port that cannot be had is told before anything is done
        self.write("Migrating the database.")
        migrate()
        with Children() as self.children:
            try:
                return self.work(after)
            except (Error, ChildEnded, DatabaseStopped):
                if database_answers():
                    raise
                # This is the cause, and what the users of the database say of it is noise.
                self.children.hurry()
                raise DatabaseStopped from None

    def work(self, after: Callable[[Result], None]) -> Result:
        """Start the children, have the work done, and compare."""
        account = describe_account(open_account())
        self.children.start("worker", "pgbroker_worker", "--queues", "default", "--concurrency", str(self.concurrency))
        address = start_web_server(self.children, self.pause)
        self.write(f"Admin: {address}  {account}")
        started = time.monotonic()
        batch = self.feed_and_wait()
        seconds = time.monotonic() - started
        result = Result(compare(batch, self.paths), seconds)
        after(result)
        return result

    def feed_and_wait(self) -> Batch:
        """Enqueue the work, show how it is done, and return when no job of the batch is live any more."""
        batch = Batch.objects.create(folder=str(self.folder))
        self.write(f"Reading {len(self.paths)} files of {self.folder}, a hundred in one transaction, as {batch}.")
        job_ids: set[int] = set()
        with display(total=jobs_for(len(self.paths))) as shown:
            for some in ingest(batch, self.paths):
                job_ids.update(some)
                shown.show(count(batch, job_ids))
                self.check()
            self.wait_until_done(batch, job_ids, shown)
        return batch

    def wait_until_done(self, batch: Batch, job_ids: set[int], shown: Display) -> None:
        """Show the counts until no job is live, or until nothing has changed for so long that something is wrong."""
        last, changed_at = Count(0), time.monotonic()
        while True:
            now = count(batch, job_ids)
            shown.show(now)
            if now != last:
                last, changed_at = now, time.monotonic()
            # The tables of the example are cheap to ask; the broker's are asked when they say that all is done.
            quiet_seconds = time.monotonic() - changed_at
            if (now.done >= len(job_ids) or quiet_seconds > 2) and not live_jobs(job_ids):
                return
            if quiet_seconds > STALL_SECONDS:
                self.write(f"Nothing has moved for {STALL_SECONDS} s.")
                return
            self.pause()

    def run_on(self) -> None:
        """Keep everything running until somebody stops it."""
        while True:
            self.pause()

    def pause(self) -> None:
        """Let a moment pass."""
        self.check()
        time.sleep(TICK_SECONDS)

    def check(self) -> None:
        """Raise what ends the demo: a database that is gone, a child that failed, a starter that is gone."""
        if not database_answers():
            raise DatabaseStopped
        self.children.check_alive()
        self.starter.check_alive()


def describe_account(password: str | None) -> str:
    """Return how to log in, as words."""
    if password is None:
        return f"user {USERNAME} (it was there before the demo; its password stays as it is)"
    return f"user {USERNAME}, password {password}"
