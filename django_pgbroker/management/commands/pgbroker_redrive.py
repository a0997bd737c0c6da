"""``manage.py pgbroker_redrive``: send dead letters back to their queues, as the same jobs."""

from argparse import Namespace
from functools import partial

from django.core.management.base import CommandParser

from django_pgbroker.domain.verbs import REDRIVE_JOB
from django_pgbroker.management.bulk_verb_command import BulkVerbCommand
from django_pgbroker.management.job_selection import add_selection
from django_pgbroker.operations.job_verbs import redrive_jobs


class Command(BulkVerbCommand):
    """Redrives by id or by filter."""

    help = (
        "Sends dead letters back to their queues, as the same jobs: id, history and steps stay. A filter without "
        "--state means dead letters; cancelled and expired jobs come back where --state names them. Many are left to a "
        "job of the broker, which can be watched and cancelled."
    )
    examples = """
manage.py pgbroker_redrive 4711 4712
manage.py pgbroker_redrive --state dead --dry-run
manage.py pgbroker_redrive --queue mail --error 'connection refused' --finished-after 2h --yes
manage.py pgbroker_redrive --type shop.charge --per-second 50 --keep-attempts --reason 'bank is back' --yes
"""

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        add_selection(parser)
        parser.add_argument(
            "--keep-attempts",
            action="store_true",
            help="grant one attempt more than were used, instead of all of them anew",
        )
        parser.add_argument("--per-second", type=float, metavar="N", help="at most so many a second; may be a fraction")
        self.add_verb_options(parser)

    def run(self, options: Namespace) -> None:
        """Redrive."""
        act = partial(redrive_jobs, keep_attempts=options.keep_attempts, per_second=options.per_second)
        self.change_selected(options, REDRIVE_JOB, act)
