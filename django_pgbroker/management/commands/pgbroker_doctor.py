"""``manage.py pgbroker_doctor``: what is wrong with the broker's database, and what to do. For people and for cron."""

import json
import sys
from argparse import RawDescriptionHelpFormatter
from typing import Any

import psycopg
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from django_pgbroker.conf import get_settings
from django_pgbroker.domain.errors import ConfigurationError
from django_pgbroker.management.columns import align_columns, make_printable
from django_pgbroker.operations.doctor.examination import Diagnosis, examine
from django_pgbroker.operations.doctor.finding import Level

#: Told apart from findings: nothing could be examined.
_FAILED = 3

_EXIT_STATUS = {Level.OK: 0, Level.WARNING: 1, Level.ALARM: 2}

JSON_HELP = """
exit status: 0 all is well, 1 warnings, 2 alarms, 3 the database could not be examined at all

--json prints one object:
  database   the alias
  level      the worst: ok, warning or alarm
  findings   list: topic, level (ok, unseen, warning, alarm), summary, remedy (empty: nothing to do),
             figures (an object of its own for each topic; seconds, bytes and counts as numbers)

A topic is unseen where this role may not look; that does not change the exit status. docs/how-to/doctor.md explains the
topics and when they warn.
"""


class Command(BaseCommand):
    """``manage.py pgbroker_doctor [--json] [--database ALIAS]``."""

    help = "Examines the database of the broker: each finding with its figures and a remedy. Changes nothing."
    # the doctor is asked when something is wrong: a failing check elsewhere shall not keep it from looking
    requires_system_checks = []

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Add exit status and the description of the JSON to ``--help``."""
        parser = super().create_parser(prog_name, subcommand, epilog=JSON_HELP, **kwargs)
        parser.formatter_class = RawDescriptionHelpFormatter
        return parser

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")
        parser.add_argument("--database", help="alias of the database with the jobs (default: PGBROKER['DATABASE'])")

    def handle(self, *, database: str | None, **options: Any) -> None:
        """Examine, print, and leave with the status of the worst finding.

        Raises:
            CommandError: the database cannot be used.
            SystemExit: there are warnings or alarms.
        """
        try:
            alias = database or get_settings().database
            diagnosis = examine(alias)
        except ConfigurationError as error:
            raise CommandError(str(error), returncode=_FAILED) from error
        except (DatabaseError, psycopg.Error) as error:
            raise CommandError(f"The database did not answer: {str(error).strip()}", returncode=_FAILED) from error
        if options["json"]:
            self.stdout.write(json.dumps(_as_json(alias, diagnosis), indent=2, default=str))
        else:
            self.stdout.write("\n".join(_as_lines(diagnosis)))
        if status := _EXIT_STATUS[diagnosis.level]:
            sys.exit(status)


def _as_json(alias: str, diagnosis: Diagnosis) -> dict[str, Any]:
    return {
        "database": alias,
        "level": diagnosis.level,
        "findings": [
            {
                "topic": topic,
                "level": finding.level,
                "summary": finding.summary,
                "remedy": finding.remedy,
                "figures": finding.figures,
            }
            for topic, finding in diagnosis.findings.items()
        ],
    }


def _as_lines(diagnosis: Diagnosis) -> list[str]:
    rows = [(finding.level.value, topic, finding.summary) for topic, finding in diagnosis.findings.items()]
    head, *aligned = align_columns(("level", "topic", "finding"), rows)
    indent = " " * head.index("finding")
    lines = [head]
    for line, finding in zip(aligned, diagnosis.findings.values(), strict=True):
        lines.append(line)
        if finding.remedy:
            lines.append(f"{indent}-> {make_printable(finding.remedy)}")
    counts = {level: sum(finding.level is level for finding in diagnosis.findings.values()) for level in Level}
    lines.append(
        f"{counts[Level.ALARM]} alarms, {counts[Level.WARNING]} warnings, {counts[Level.UNSEEN]} unseen, "
        f"{counts[Level.OK]} ok"
    )
    return lines
