"""``manage.py pgbroker_worker``: run jobs, and the maintenance duties beside them."""

import logging
import os
import sys
import threading
from argparse import SUPPRESS, ArgumentParser
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, NoReturn

import psycopg
from django.core.management.base import BaseCommand, CommandError
from django.db import Error, connections

from django_pgbroker.conf import get_settings
from django_pgbroker.domain.errors import PgbrokerError
from django_pgbroker.maintenance.duties import DUTIES
from django_pgbroker.maintenance.runner import MaintenanceRunner
from django_pgbroker.maintenance.sampler import leave_samples
from django_pgbroker.management.health_place import HealthPlace, answering, read_health_place
from django_pgbroker.management.own_command import repeat_command
from django_pgbroker.management.reloading import DRAIN_SECONDS, ReloadingSupervisor
from django_pgbroker.management.start import check_connections, check_database
from django_pgbroker.management.title import set_title
from django_pgbroker.runtime.announcer import flush_announcements
from django_pgbroker.runtime.connections import describe_error
from django_pgbroker.runtime.stopping import ignore_signals
from django_pgbroker.worker.budget import DUTY_PROCESSES
from django_pgbroker.worker.lease_trust import LEASES_NOT_KEPT
from django_pgbroker.worker.leash import follow_leash
from django_pgbroker.worker.options import WorkerOptions, count_children, parse_queues
from django_pgbroker.worker.supervisor import MOST_PROCESSES, ORDERED_AWAY, Supervisor
from django_pgbroker.worker.type_choice import parse_patterns
from django_pgbroker.worker.worker import Worker


class Place(NamedTuple):
    """Which of how many processes of one supervisor this is, and the file descriptor of its leash."""

    number: int
    processes: int
    leash: int

    @classmethod
    def parse(cls, text: str) -> "Place":
        """Read ``2/3:7``; ``ValueError`` for all else."""
        number, processes, leash = map(int, text.replace("/", ":").split(":"))
        return cls(number, processes, leash)


class Command(BaseCommand):
    """A worker: any number may run, on any number of machines."""

    help = (
        "Run the jobs of one or more queues. SIGTERM or Ctrl-C finishes what runs; a second one hands it back at once. "
        "Example: manage.py pgbroker_worker --queues default,critical:5 --concurrency 20"
    )
    _argv: Sequence[str] | None = None
    _health: HealthPlace | None = None

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "--queues", default="default", help="name[:weight] of each queue, separated by commas (default: default)"
        )
        parser.add_argument(
            "--strict",
            action="store_true",
            help="serve the queues in the order they are written: one gets nothing while one before it has jobs",
        )
        parser.add_argument(
            "--types", help="take these job types only: names or patterns, as in 'mail.*,shop.charge' (default: all)"
        )
        parser.add_argument("--exclude-types", help="leave these job types to other workers: names or patterns")
        parser.add_argument("--concurrency", type=int, default=10, help="handlers that run at once (default: 10)")
        parser.add_argument(
            "--async-concurrency", type=int, default=100, help="async handlers that run at once (default: 100)"
        )
        parser.add_argument(
            "--child-processes",
            type=int,
            help="child processes for handlers with executor='process' (default: as many as processors)",
        )
        parser.add_argument(
            "--processes",
            type=int,
            help=f"run so many worker processes (1 to {MOST_PROCESSES}) under this one, each with --concurrency slots; "
            "one that dies is started again, one that an operator ordered to drain or to stop is not",
        )
        parser.add_argument(
            "--until-empty",
            action="store_true",
            help="end when no job of these queues that it takes is pending, scheduled or running any more",
        )
        parser.add_argument(
            "--no-maintenance",
            action="store_true",
            help="leave the duties to pgbroker_reaper and pgbroker_scheduler, which must then run",
        )
        parser.add_argument(
            "--max-jobs", type=int, metavar="N", help="end after N handlers, for a fresh process to take the place"
        )
        parser.add_argument(
            "--max-memory",
            type=int,
            metavar="MB",
            help="drain and end when the process occupies more MiB than this, for a fresh one to take the place",
        )
        parser.add_argument(
            "--health-port",
            type=int,
            metavar="PORT",
            help="answer /livez and /readyz over HTTP; process k of --processes does so at PORT + k - 1; 0: any port",
        )
        parser.add_argument(
            "--health-host", default="127.0.0.1", metavar="HOST", help="address to answer on (default: 127.0.0.1)"
        )
        parser.add_argument("--database", help="alias of the database with the jobs (default: PGBROKER['DATABASE'])")
        parser.add_argument(
            "--reload", action="store_true", help="for development: restart the worker when the code changes"
        )
        parser.add_argument("--process", type=Place.parse, help=SUPPRESS)
        parser.add_argument("--probe", action="store_true", help=SUPPRESS)

    def run_from_argv(self, argv: list[str]) -> None:
        """Run as a process: a late signal, for one that is ending already, must not change its status."""
        self._argv = argv
        try:
            super().run_from_argv(argv)
        finally:
            ignore_signals()

    def handle(
        self, *, processes: int | None, process: Place | None, no_maintenance: bool, probe: bool, **options: Any
    ) -> None:
        """Run the worker, or the supervisor of several.

        Raises:
            CommandError: the options or the database cannot be used.
        """
        try:
            worker_options = _read_options(**options)
            if probe:
                return
            self._health = read_health_place(process.number if process else 1, **options)
            check_database(worker_options.database)
            if process:
                has_duties = process.number <= DUTY_PROCESSES and not no_maintenance
                status = self._run_worker(worker_options, process, with_maintenance=has_duties)
            elif options["reload"]:
                status = self._run_reloading(worker_options, processes, with_maintenance=not no_maintenance)
            elif processes is None:
                self._announce(worker_options, None, with_maintenance=not no_maintenance)
                status = self._run_worker(worker_options, None, with_maintenance=not no_maintenance)
            else:
                status = self._run_supervisor(worker_options, processes, with_maintenance=not no_maintenance)
        except PgbrokerError as error:
            raise CommandError(str(error)) from error
        except (psycopg.Error, Error) as error:
            raise CommandError(f"the database cannot be used: {describe_error(error)}") from error
        if status:
            sys.exit(status)

    def _announce(self, options: WorkerOptions, processes: int | None, *, with_maintenance: bool) -> None:
        """Say what is about to run and what it needs, or refuse it."""
        budget = check_connections(options, processes or 1, with_maintenance=with_maintenance)
        who = "worker" if processes is None else "supervisor"
        size = options.describe_capacity()
        if processes is not None:
            size = f"{processes} processes, each {size}"
        self.stdout.write(
            f"pgbroker {who} {options.name}: {size} on {options.describe_queues()}. {budget}. Ctrl-C or SIGTERM drains."
        )
        self.stdout.flush()
        if warning := budget.warning():
            self.stderr.write(self.style.WARNING(f"pgbroker {who} {options.name}: {warning}"))

    def _run_supervisor(self, options: WorkerOptions, processes: int, *, with_maintenance: bool) -> int:
        if not 1 <= processes <= MOST_PROCESSES:
            raise CommandError(f"--processes must be from 1 to {MOST_PROCESSES}, not {processes}")
        command = repeat_command(self._argv)
        if self._health:
            self._health.require(processes)
        self._announce(options, processes, with_maintenance=with_maintenance)
        _close_connections()
        set_title(f"pgbroker supervisor: {processes} workers")
        supervisor = Supervisor(
            processes,
            lambda number, leash: [*command, "--process", f"{number}/{processes}:{leash}"],
            until_empty=options.until_empty,
        )
        status = supervisor.run()
        self.stdout.write(f"pgbroker supervisor {options.name} stopped.")
        return status

    def _run_reloading(self, options: WorkerOptions, processes: int | None, *, with_maintenance: bool) -> int:
        if processes is not None:
            raise CommandError("--reload watches one worker for a developer: leave out --processes")
        supervisor = ReloadingSupervisor(repeat_command(self._argv), until_empty=options.until_empty)
        self._announce(options, None, with_maintenance=with_maintenance)
        _close_connections()
        status = supervisor.run()
        self.stdout.write(f"pgbroker worker {options.name} stopped.")
        return status

    def _run_worker(self, options: WorkerOptions, place: Place | None, *, with_maintenance: bool) -> int:
        who = f"pgbroker worker {place.number}/{place.processes}" if place else "pgbroker worker"
        capacity = options.capacity
        queues = ",".join(share.name for share in options.queues)

        def show(running: int, is_draining: bool) -> None:
            done = "draining, " if is_draining else ""
            set_title(f"{who}: {queues}: {done}{running} of {capacity} running")

        worker = Worker(options, on_beat=show, on_lapse=lambda: os._exit(LEASES_NOT_KEPT))
        if place:
            follow_leash(place.leash, worker.stopping)
        ended = threading.Event()
        runner = MaintenanceRunner(options.database, DUTIES, ended, label=options.name) if with_maintenance else None
        # a supervisor says when to abort: its signal and the leash may come both, and mean the same
        with (
            answering(self._health, worker.vitals, self._show_health),
            worker.stopping.on_signals(escalates=place is None),
        ):
            if runner:
                runner.start()
            try:
                status = worker.run()
            finally:
                ended.set()
                if runner:
                    runner.join(1.0 if worker.left_running else 10.0)
            if runner and not status:
                leave_samples(options.database, options.name)
            self.stdout.write(f"pgbroker worker {options.name} stopped.")
        if place and worker.is_ordered_away:
            status = ORDERED_AWAY
        if worker.left_running:
            self._leave_at_once(status)
        return status

    def _show_health(self, url: str) -> None:
        self.stdout.write(f"pgbroker health: {url}/livez and /readyz")
        self.stdout.flush()

    def _leave_at_once(self, status: int) -> NoReturn:
        """Handlers that were given up on may hold threads, such as an event loop's, that Python would wait for."""
        flush_announcements()
        logging.shutdown()
        self.stdout.flush()
        self.stderr.flush()
        os._exit(status)


def _close_connections() -> None:
    """A supervisor needs none, nor a pool that keeps some ready."""
    for connection in connections.all(initialized_only=True):
        connection.close()
        if connection.vendor == "postgresql":
            connection.close_pool()  # type: ignore[attr-defined]


def _read_options(
    *,
    queues: str,
    strict: bool,
    types: str | None,
    exclude_types: str | None,
    concurrency: int,
    async_concurrency: int,
    child_processes: int | None,
    until_empty: bool,
    database: str | None,
    max_jobs: int | None,
    max_memory: int | None,
    reload: bool,
    **_options: Any,
) -> WorkerOptions:
    settings = get_settings()
    if reload:
        settings = replace(settings, drain_seconds=min(settings.drain_seconds, DRAIN_SECONDS))
    return WorkerOptions(
        parse_queues(queues),
        concurrency,
        async_concurrency,
        child_processes=count_children() if child_processes is None else child_processes,
        database=database or settings.database,
        until_empty=until_empty,
        types=() if types is None else parse_patterns(types),
        exclude_types=() if exclude_types is None else parse_patterns(exclude_types),
        is_strict=strict,
        max_jobs=max_jobs,
        max_memory_mb=max_memory,
        settings=settings,
    )
