"""``manage.py pgbroker_retention``: drop the history that is past its time now, or show what would go."""

import json
import threading
from argparse import RawDescriptionHelpFormatter
from dataclasses import asdict
from typing import Any

import psycopg
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError
from psycopg.errors import LockNotAvailable

from django_pgbroker.conf import get_settings
from django_pgbroker.domain.errors import ConfigurationError
from django_pgbroker.domain.sizes import describe_bytes
from django_pgbroker.maintenance.retention import Retention
from django_pgbroker.maintenance.runner import MaintenanceRunner
from django_pgbroker.management.columns import align_columns
from django_pgbroker.operations.retention import DuePartition, RetentionPlan, plan_retention

JSON_HELP = """
--json prints one object:
  retention_days  the limit in days, or null: history is kept for ever
  is_dry_run      whether nothing was changed
  partitions      list, oldest first, of those that went (or would go): parent, name, lower, upper, rows (an estimate),
                  bytes (with indexes)
  default_rows    old rows deleted from (or to be deleted from) the default partitions, counted up to 100001 in each
  left            partitions that are past the limit and still there

Only whole partitions go, so history lives up to one PARTITION_PERIOD longer. Dead letters never go by age. Safe beside
running workers, which do the same by themselves every ten minutes: an acknowledge waits 200 ms at most.
"""


class Command(BaseCommand):
    """``manage.py pgbroker_retention [--dry-run [--days N]] [--json] [--database ALIAS]``."""

    help = "Drops the history that is older than PGBROKER['RETENTION_DAYS']; --dry-run shows what would go."

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Add the description of the JSON to ``--help``."""
        parser = super().create_parser(prog_name, subcommand, epilog=JSON_HELP, **kwargs)
        parser.formatter_class = RawDescriptionHelpFormatter
        return parser

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("--dry-run", action="store_true", help="show what would go, and change nothing")
        parser.add_argument("--days", type=int, help="with --dry-run: what would go under this limit instead")
        parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")
        parser.add_argument("--database", help="alias of the database with the jobs (default: PGBROKER['DATABASE'])")

    def handle(self, *, dry_run: bool, days: int | None, database: str | None, **options: Any) -> None:
        """Show or drop.

        Raises:
            CommandError: the options or the database cannot be used, or a partition could not go.
        """
        if days is not None and not dry_run:
            raise CommandError("--days only shows another limit, with --dry-run; to apply it set RETENTION_DAYS")
        if days is not None and days < 1:
            raise CommandError("--days must be 1 or more")
        try:
            alias = database or get_settings().database
            before = plan_retention(alias, days)
            if not dry_run and not before.is_empty:
                _drop(alias)
            after = before if dry_run else plan_retention(alias)
        except ConfigurationError as error:
            raise CommandError(str(error)) from error
        except DatabaseError as error:
            raise CommandError(
                f"The database did not answer ({str(error).strip()}). Is it up, and has `manage.py migrate` been run?"
            ) from error
        outcome = _as_json(before, after, is_dry_run=dry_run)
        self.stdout.write(json.dumps(outcome, indent=2, default=str) if options["json"] else _as_text(outcome))


def _drop(alias: str) -> None:
    try:
        MaintenanceRunner(alias, [Retention], threading.Event(), label="retention").run_once()
    except LockNotAvailable as error:
        raise CommandError(
            "Somebody reads or vacuums the history, so a partition could not go now; those before it have gone. "
            "Run this again, or leave it to the workers; pgbroker_doctor shows who holds what."
        ) from error
    except psycopg.Error as error:
        raise CommandError(f"A partition could not go; the others have gone: {str(error).strip()}") from error


def _as_json(before: RetentionPlan, after: RetentionPlan, *, is_dry_run: bool) -> dict[str, Any]:
    left = {partition.name for partition in after.partitions}
    gone = [each for each in before.partitions if is_dry_run or each.name not in left]
    return {
        "retention_days": before.days,
        "is_dry_run": is_dry_run,
        "partitions": [asdict(each) for each in gone],
        "default_rows": before.default_rows if is_dry_run else before.default_rows - after.default_rows,
        "left": sorted(left),
    }


def _as_text(outcome: dict[str, Any]) -> str:
    if outcome["retention_days"] is None:
        return "PGBROKER['RETENTION_DAYS'] is None: history is kept for ever."
    partitions = [DuePartition(**each) for each in outcome["partitions"]]
    if not partitions and not outcome["default_rows"]:
        return f"No partition is older than {outcome['retention_days']} days as a whole: nothing goes."
    verb = "would go" if outcome["is_dry_run"] else "went"
    lines = []
    if partitions:
        lines += align_columns(("partition", "from", "until", "rows (estimate)", "size"), [_row(p) for p in partitions])
    lines.append(
        f"{len(partitions)} partitions with about {sum(p.rows for p in partitions):,} rows and "
        f"{describe_bytes(sum(p.bytes for p in partitions))}, and {outcome['default_rows']:,} rows of default "
        f"partitions {verb}: all of it older than {outcome['retention_days']} days. Dead letters stay."
    )
    return "\n".join(lines)


def _row(partition: DuePartition) -> tuple[str, ...]:
    lower, upper = (f"{bound:%Y-%m-%d}" if bound else "-" for bound in (partition.lower, partition.upper))
    return partition.name, lower, upper, f"{partition.rows:,}", describe_bytes(partition.bytes)
