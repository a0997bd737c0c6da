"""``manage.py pgbroker_roles``: make the Django groups of the three roles, or complete them."""

from argparse import Namespace
from dataclasses import asdict

from django.core.management.base import CommandParser

from django_pgbroker.management.broker_command import BrokerCommand
from django_pgbroker.management.listing import write_json, write_rows
from django_pgbroker.operations.roles import RoleReport, create_roles


class Command(BrokerCommand):
    """Makes groups, and gives them the permissions of their role."""

    help = (
        "Makes the groups 'pgbroker viewer', 'pgbroker operator' and 'pgbroker admin', and gives them the permissions "
        "that they lack. May be run again after every upgrade; takes nothing away."
    )
    examples = """
manage.py pgbroker_roles --dry-run
manage.py pgbroker_roles
"""

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("--dry-run", action="store_true", help="tell what would be added, and change nothing")
        parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")

    def run(self, options: Namespace) -> None:
        """Make them, and tell what was added."""
        reports = create_roles(is_trial=options.dry_run)
        if options.json:
            write_json(self.stdout, {"is_dry_run": options.dry_run, "roles": [asdict(each) for each in reports]})
            return
        write_rows(self.stdout, ("group", "is", "had", "added", "permissions added"), [_row(each) for each in reports])
        if options.dry_run and self.stdout.isatty():
            self.stdout.write("Nothing was changed: this was a dry run.")


def _row(report: RoleReport) -> tuple[str, ...]:
    return (
        report.group,
        "new" if report.is_new else "there",
        str(report.had),
        str(len(report.added)),
        ", ".join(report.added),
    )
