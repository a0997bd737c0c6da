"""What ``pgbroker_reaper`` and ``pgbroker_scheduler`` have in common: options, signals, and what they print."""

import threading
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

import psycopg
from django.core.management.base import BaseCommand, CommandError
from django.db import Error

from django_pgbroker.conf import get_settings
from django_pgbroker.maintenance.duty import Duty
from django_pgbroker.maintenance.runner import MaintenanceRunner
from django_pgbroker.management.start import check_database
from django_pgbroker.runtime.stopping import Stopping


class DutyCommand(BaseCommand):
    """Runs duties until it is stopped, or each of them once."""

    #: Shown in ``pg_stat_activity``.
    label: str
    duties: Sequence[type[Duty]]

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--database", help="alias of the database with the jobs (default: PGBROKER['DATABASE'])")
        parser.add_argument("--once", action="store_true", help="run each duty until nothing is left for it, and exit")

    def handle(self, *, database: str | None, once: bool, **_options: Any) -> None:
        """Run the duties.

        Raises:
            CommandError: the database is unknown, not PostgreSQL, not migrated or away (with ``--once``), or a duty
                failed there.
        """
        alias = database or get_settings().database
        check_database(alias)
        stopping = Stopping()
        with stopping.on_signals():
            if once:
                self._run_once(alias, stopping.drain)
            else:
                self._run_until_stopped(alias, stopping.drain)

    def _run_once(self, alias: str, stopping: threading.Event) -> None:
        try:
            reports = MaintenanceRunner(alias, self.duties, stopping, label=self.label).run_once()
        except (psycopg.Error, Error) as error:
            raise CommandError(f"a duty failed, those before it have done their work: {error}".strip()) from error
        for report in reports:
            done = "another process is in it" if report.moved is None else f"{report.moved} moved"
            self.stdout.write(f"{report.name}: {done}")

    def _run_until_stopped(self, alias: str, stopping: threading.Event) -> None:
        names = ", ".join(duty.name for duty in self.duties)
        self.stdout.write(f"pgbroker {self.label} runs on database {alias!r}: {names}. Ctrl-C or SIGTERM stops it.")
        self.stdout.flush()
        MaintenanceRunner(alias, self.duties, stopping, label=self.label).run_in_foreground()
        self.stdout.write(f"pgbroker {self.label} stopped.")
