"""``manage.py pgbroker_bench``: figures of this machine, as ratios to a floor measured in the same run."""

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import Error

from django_pgbroker.bench.drain import floor_statements, measure_drain
from django_pgbroker.bench.enqueue import measure_enqueue
from django_pgbroker.conf import get_settings


class Command(BaseCommand):
    """Measures in a database of its own on the project's server, which is dropped afterwards."""

    help = (
        "Measure the broker beside its own statements in a bare loop, in a database made for it and dropped. "
        "Example: manage.py pgbroker_bench drain --jobs 20000 --json"
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("what", choices=["drain", "enqueue"], help="drain: one worker process; enqueue: one by one")
        parser.add_argument("--jobs", type=int, default=20_000, help="jobs of one run (default: 20,000)")
        parser.add_argument("--runs", type=int, default=3, help="interleaved pairs; the medians count (default: 3)")
        parser.add_argument("--concurrency", type=int, default=10, help="slots of the worker (default: 10)")
        parser.add_argument("--json", action="store_true", help="print one JSON object instead of lines")
        parser.add_argument("--explain", action="store_true", help="print the SQL of the drain's floor first")
        parser.add_argument("--database", help="alias whose server is used (default: PGBROKER['DATABASE'])")

    def handle(self, *, what: str, jobs: int, runs: int, concurrency: int, **options: Any) -> None:
        """Measure and print.

        Raises:
            CommandError: the numbers are impossible, or the scratch database cannot be made.
        """
        if jobs < 100 or runs < 1:
            raise CommandError("--jobs must be at least 100 and --runs at least 1")
        alias = options["database"] or get_settings().database
        if options["explain"]:
            for name, text in floor_statements().items():
                self.stdout.write(f"-- {name}\n{text};\n")
        tell = self.stderr.write if options["json"] else self.stdout.write
        try:
            report = (
                measure_drain(alias, jobs, concurrency, runs, tell)
                if what == "drain"
                else measure_enqueue(alias, jobs, runs, tell)
            )
        except Error as error:
            raise CommandError(f"the bench needs a role that may create a database: {error}".strip()) from error
        if options["json"]:
            self.stdout.write(json.dumps(asdict(report)))
            return
        self.stdout.write(
            f"{what}: {report.jobs_per_second:,.0f} jobs/s, floor {report.floor_jobs_per_second:,.0f}, "
            f"ratio {report.ratio:.2f} (median of {runs} interleaved pairs of {jobs:,} jobs)"
        )
