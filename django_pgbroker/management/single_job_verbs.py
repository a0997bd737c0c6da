"""The verbs of ``pgbroker_jobs`` that are for one job: edit its arguments, clone it, enqueue one by hand."""

from argparse import Namespace
from functools import partial

from django.core.management.base import CommandParser

from django_pgbroker.domain import verbs
from django_pgbroker.domain.verb_report import VerbReport
from django_pgbroker.management.bulk_verb_command import BulkVerbCommand
from django_pgbroker.management.job_values import (
    ARGUMENTS_HELP,
    LATER_HELP,
    place_ahead,
    read_arguments,
    read_priority,
)
from django_pgbroker.management.moments import MOMENT_HELP, read_moment
from django_pgbroker.management.paging import read_id
from django_pgbroker.operations import job_verbs
from django_pgbroker.operations.enqueue_by_hand import enqueue_by_name


class SingleJobVerbs(BulkVerbCommand):
    """The part of the command that declares and runs them."""

    def add_single_verbs(self, parser: CommandParser) -> None:
        """Declare the subcommands."""
        edit = self.add_subcommand(
            parser,
            "edit",
            self.edit,
            "Replace the arguments of one job that waits or is dead; they are checked against its handler.",
            "manage.py pgbroker_jobs edit 4711 --arguments '{\"order_id\": 8}'",
        )
        edit.add_argument("id", type=read_id, metavar="ID", help="of the job")
        edit.add_argument("--arguments", type=read_arguments, metavar="JSON", required=True, help=ARGUMENTS_HELP)
        self.add_verb_options(edit)
        clone = self.add_subcommand(
            parser,
            "clone",
            self.clone,
            "Enqueue a new job that carries what another one carries, live or finished.",
            "manage.py pgbroker_jobs clone 4711 --queue bulk",
        )
        clone.add_argument("id", type=read_id, metavar="ID", help="of the original")
        clone.add_argument("--queue", metavar="NAME", help="where it is to wait (default: as the original)")
        clone.add_argument("--priority", type=read_priority, help="of the new job (default: as the original)")
        clone.add_argument("--arguments", type=read_arguments, metavar="JSON", help=ARGUMENTS_HELP)
        self.add_verb_options(clone)

        enqueue = self.add_subcommand(
            parser,
            "enqueue",
            self.enqueue,
            "Enqueue a job by hand; its arguments are checked against the handler.",
            "manage.py pgbroker_jobs enqueue shop.send_receipt --arguments '{\"order_id\": 7}'\n"
            "manage.py pgbroker_jobs enqueue shop.report --queue bulk --at 2h --reason 'asked by finance'",
        )
        enqueue.add_argument("type", metavar="TYPE", help="name of the job type")
        enqueue.add_argument("--arguments", type=read_arguments, default={}, metavar="JSON", help=ARGUMENTS_HELP)
        enqueue.add_argument("--queue", metavar="NAME", help="where it is to wait (default: as the job type says)")
        enqueue.add_argument("--priority", type=read_priority, help="-100 to 100, or a named level")
        enqueue.add_argument("--at", type=read_moment, metavar="WHEN", help=LATER_HELP)
        enqueue.add_argument(
            "--expires", type=read_moment, metavar="WHEN", help=f"latest start: {MOMENT_HELP} from now"
        )
        enqueue.add_argument("--max-attempts", type=int, metavar="N", help="1 to 1000")
        enqueue.add_argument("--tenant", metavar="NAME", help="whose job it is")
        enqueue.add_argument("--correlation-id", metavar="TEXT", help="follows the job through logs and history")
        self.add_verb_options(enqueue)

    def edit(self, options: Namespace) -> None:
        """One job."""
        act = partial(job_verbs.edit_job, options.id, options.arguments, **self.read_asking(options))
        self.carry_out(options, act, is_many=False)

    def clone(self, options: Namespace) -> None:
        """One job."""
        asking = self.read_asking(options)

        def act() -> VerbReport:
            handle = job_verbs.clone_job(
                options.id, queue=options.queue, priority=options.priority, arguments=options.arguments, **asking
            )
            return VerbReport(verbs.CLONE_JOB.name, changed=1, ids=(options.id,), created=(handle.id,))

        self.carry_out(options, act, is_many=False)

    def enqueue(self, options: Namespace) -> None:
        """A new job."""
        names = ("queue", "priority", "expires", "max_attempts", "tenant", "correlation_id")
        given = {name: getattr(options, name) for name in names} | place_ahead(options.at)
        act = partial(enqueue_by_name, options.type, options.arguments, **given, **self.read_asking(options))
        self.carry_out(
            options,
            lambda: VerbReport(verbs.ENQUEUE_JOB.name, changed=1, created=(act().id,)),
            is_many=False,
            target=options.type,
        )
