"""``manage.py pgbroker_worker``: run jobs, and the maintenance duties beside them."""

import logging
import os
import sys
import threading
from argparse import ArgumentParser
from typing import Any, NoReturn

import psycopg
from django.core.management.base import BaseCommand, CommandError
from django.db import Error

from django_pgbroker.domain.errors import PgbrokerError
from django_pgbroker.maintenance.duties import DUTIES
from django_pgbroker.maintenance.runner import MaintenanceRunner
from django_pgbroker.maintenance.sampler import leave_samples
from django_pgbroker.management.start import check_database
from django_pgbroker.runtime.announcer import flush_announcements
from django_pgbroker.runtime.stopping import ignore_signals
from django_pgbroker.worker.options import WorkerOptions, parse_queues
from django_pgbroker.worker.worker import Worker


class Command(BaseCommand):
    """A worker: any number may run, on any number of machines."""

    help = (
        "Run the jobs of one or more queues. SIGTERM or Ctrl-C finishes what runs; a second one hands it back at once. "
        "Example: manage.py pgbroker_worker --queues default,critical:5 --concurrency 20"
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "--queues", default="default", help="name[:weight] of each queue, separated by commas (default: default)"
        )
        parser.add_argument("--concurrency", type=int, default=10, help="handlers that run at once (default: 10)")
        parser.add_argument(
            "--until-empty",
            action="store_true",
            help="end when no job of these queues is pending, scheduled or running any more",
        )
        parser.add_argument(
            "--no-maintenance",
            action="store_true",
            help="leave the duties to pgbroker_reaper and pgbroker_scheduler, which must then run",
        )
        parser.add_argument("--database", help="alias of the database with the jobs (default: PGBROKER['DATABASE'])")

    def run_from_argv(self, argv: list[str]) -> None:
        """Run as a process: a late signal, for one that is ending already, must not change its status."""
        try:
            super().run_from_argv(argv)
        finally:
            ignore_signals()

    def handle(self, *, queues: str, concurrency: int, until_empty: bool, no_maintenance: bool, **options: Any) -> None:
        """Run the worker.

        Raises:
            CommandError: the options or the database cannot be used.
        """
        try:
            chosen = {"database": options["database"]} if options["database"] else {}
            worker_options = WorkerOptions(parse_queues(queues), concurrency, until_empty=until_empty, **chosen)
            check_database(worker_options.database)
            status = self._run(worker_options, with_maintenance=not no_maintenance)
        except PgbrokerError as error:
            raise CommandError(str(error)) from error
        except (psycopg.Error, Error) as error:
            raise CommandError(f"the database cannot be used: {error}".strip()) from error
        if status:
            sys.exit(status)

    def _run(self, options: WorkerOptions, *, with_maintenance: bool) -> int:
        names = ", ".join(f"{share.name} (weight {share.weight})" for share in options.queues)
        self.stdout.write(
            f"pgbroker worker {options.name}: {options.concurrency} slots on {names}. Ctrl-C or SIGTERM drains."
        )
        self.stdout.flush()
        ended = threading.Event()
        runner = MaintenanceRunner(options.database, DUTIES, ended, label=options.name) if with_maintenance else None
        if runner:
            runner.start()
        worker = Worker(options)
        with worker.stopping.on_signals():
            try:
                status = worker.run()
            finally:
                ended.set()
                if runner:
                    runner.join()
            if runner and not status:
                leave_samples(options.database, options.name)
            self.stdout.write(f"pgbroker worker {options.name} stopped.")
        if worker.left_running:
            self._leave_at_once(status)
        return status

    def _leave_at_once(self, status: int) -> NoReturn:
        """Handlers that were given up on may hold threads, such as an event loop's, that Python would wait for."""
        flush_announcements()
        logging.shutdown()
        self.stdout.flush()
        self.stderr.flush()
        os._exit(status)
