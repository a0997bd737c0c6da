"""``manage.py pgbroker_audit``: who did what to jobs, queues and workers, newest first."""

from argparse import Namespace

from django.core.management.base import CommandParser

from django_pgbroker.management.audit_rows import AUDIT_HEAD, audit_row, encode_entry
from django_pgbroker.management.broker_command import BrokerCommand
from django_pgbroker.management.listing import write_json, write_rows
from django_pgbroker.management.moments import MOMENT_HELP, place_in_past, read_moment
from django_pgbroker.management.paging import add_paging_options, tell_more
from django_pgbroker.operations.audit_log import AuditQuery, read_audit


class Command(BrokerCommand):
    """Prints entries of the audit log."""

    help = "Shows what operators did, newest first: from the admin, commands and code."
    examples = """
manage.py pgbroker_audit --since 2h
manage.py pgbroker_audit --job 4711
manage.py pgbroker_audit --actor ada --action job.cancel --json
manage.py pgbroker_audit --queue mail --until 2026-11-30T08:00+01:00
"""

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("--actor", help="who did it, exactly")
        parser.add_argument("--action", help="the verb, as in job.cancel or queue.pause")
        parser.add_argument("--source", help="from where: ui, command, code or duty")
        parser.add_argument("--since", type=read_moment, metavar="WHEN", help=f"{MOMENT_HELP} ago")
        parser.add_argument("--until", type=read_moment, metavar="WHEN", help="up to then; as --since")
        parser.add_argument("--job", type=int, metavar="ID", help="what was done to this job")
        parser.add_argument("--queue", metavar="NAME", help="what was done to this queue")
        parser.add_argument("--worker", type=int, metavar="ID", help="what was done to this worker")
        add_paging_options(parser)
        self.add_read_options(parser)

    def run(self, options: Namespace) -> None:
        """Read one page and print it."""
        query = AuditQuery(
            actor=options.actor,
            action=options.action,
            source=options.source,
            since=place_in_past(options.since, options.database),
            until=place_in_past(options.until, options.database),
            job_id=options.job,
            queue=options.queue,
            worker_id=options.worker,
        )
        page = read_audit(query, before=options.after, limit=options.limit, using=options.database)
        if options.json:
            entries = [encode_entry(entry) for entry in page.rows]
            write_json(self.stdout, {"entries": entries, "next_after": page.next_before})
        else:
            write_rows(self.stdout, AUDIT_HEAD, list(map(audit_row, page.rows)), empty="No entry in the audit log.")
        tell_more(self.stderr, page)
