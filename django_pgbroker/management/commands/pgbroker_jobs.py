"""``manage.py pgbroker_jobs``: list jobs, look at one, and do to them what operators do."""

from argparse import Namespace
from functools import partial

from django.core.management.base import CommandParser

from django_pgbroker.domain import verbs
from django_pgbroker.management.job_page import encode_detail, write_detail
from django_pgbroker.management.job_rows import FINISHED_HEAD, LIVE_HEAD, encode_job, finished_row, live_row
from django_pgbroker.management.job_selection import add_filter_options, add_selection, read_filter
from django_pgbroker.management.job_values import LATER_HELP, place_ahead, read_priority
from django_pgbroker.management.listing import write_json, write_rows
from django_pgbroker.management.moments import read_moment
from django_pgbroker.management.paging import add_paging_options, read_id, tell_more
from django_pgbroker.management.single_job_verbs import SingleJobVerbs
from django_pgbroker.operations import job_verbs
from django_pgbroker.operations.job_detail import read_job
from django_pgbroker.operations.listing import list_jobs

#: Subcommands without options of their own: name, verb, function, purpose, an example.
_PLAIN = (
    ("cancel", verbs.CANCEL_JOB, job_verbs.cancel_jobs, "Cancel jobs: those that run are asked to end.", "4711"),
    (
        "retry",
        verbs.RETRY_JOB,
        job_verbs.retry_jobs,
        "Try jobs again now: scheduled ones are due at once, dead, cancelled and expired ones come back.",
        "--state dead --error-class builtins.TimeoutError --yes",
    ),
    ("run-now", verbs.RUN_JOB_NOW, job_verbs.run_jobs_now, "Make scheduled jobs due at once.", "--queue mail --yes"),
    (
        "release",
        verbs.RELEASE_JOB,
        job_verbs.release_jobs,
        "Make parked jobs pending; one whose reason still holds may be parked again.",
        "--type shop.charge --yes",
    ),
    (
        "discard",
        verbs.DISCARD_JOB,
        job_verbs.discard_jobs,
        "End the stay of dead letters: they are cancelled, and go with the history when it is old.",
        "--state dead --finished-before 90d --reason 'too old' --yes",
    ),
)


class Command(SingleJobVerbs):
    """Lists jobs, shows one, and changes them."""

    help = "Lists jobs, shows one, and does to them what operators do. See `pgbroker_jobs SUBCOMMAND --help`."
    examples = """
manage.py pgbroker_jobs list --state running
manage.py pgbroker_jobs show 4711
manage.py pgbroker_jobs cancel 4711 --reason 'ordered twice'
manage.py pgbroker_jobs retry --state dead --queue mail --dry-run
"""

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the subcommands."""
        self._add_reads(parser)
        for name, verb, act, purpose, example in _PLAIN:
            run = partial(self.change_selected, verb=verb, act=act)
            own = self.add_subcommand(parser, name, run, purpose, f"manage.py pgbroker_jobs {name} {example}")
            add_selection(own)
            self.add_verb_options(own)
        self._add_changes(parser)
        self.add_single_verbs(parser)

    def _add_reads(self, parser: CommandParser) -> None:
        listing = self.add_subcommand(
            parser,
            "list",
            self.list_matching,
            "List jobs, the latest enqueued first: those that wait or run, or finished ones.",
            "manage.py pgbroker_jobs list --state running --state pending\n"
            "manage.py pgbroker_jobs list --state dead --type shop.charge --finished-after 24h --json\n"
            "manage.py pgbroker_jobs list --finished --limit 1000 --after 4711",
        )
        add_filter_options(listing)
        listing.add_argument("--finished", action="store_true", help="list finished jobs, of whatever state")
        add_paging_options(listing)
        self.add_read_options(listing)
        show = self.add_subcommand(
            parser,
            "show",
            self.show,
            "Show everything about one job: state, times, arguments, executions, what operators did to it.",
            "manage.py pgbroker_jobs show 4711\nmanage.py pgbroker_jobs show 4711 --json",
        )
        show.add_argument("id", type=read_id, metavar="ID", help="of the job")
        self.add_read_options(show)

    def _add_changes(self, parser: CommandParser) -> None:
        postpone = self.add_subcommand(
            parser,
            "postpone",
            self.postpone,
            "Have jobs start later; one that would expire before that is refused.",
            "manage.py pgbroker_jobs postpone 4711 --until 2h\n"
            "manage.py pgbroker_jobs postpone --queue bulk --until 2026-12-01T03:00+01:00 --yes",
        )
        add_selection(postpone)
        postpone.add_argument("--until", type=read_moment, metavar="WHEN", required=True, help=LATER_HELP)
        self.add_verb_options(postpone)
        move = self.add_subcommand(
            parser,
            "move",
            self.move,
            "Have jobs wait in another queue.",
            "manage.py pgbroker_jobs move --queue mial --to mail --yes",
        )
        add_selection(move)
        move.add_argument("--to", metavar="QUEUE", required=True, help="where they are to wait; must exist")
        self.add_verb_options(move)
        priority = self.add_subcommand(
            parser,
            "priority",
            self.set_priority,
            "Give jobs that wait another priority.",
            "manage.py pgbroker_jobs priority 4711 --to 50\n"
            "manage.py pgbroker_jobs priority --tenant acme --to backfill --yes",
        )
        add_selection(priority)
        text = "-100 to 100, higher runs first, or a named level"
        priority.add_argument("--to", type=read_priority, metavar="PRIORITY", required=True, help=text)
        self.add_verb_options(priority)

    def list_matching(self, options: Namespace) -> None:
        """Read one page and print it."""
        page = list_jobs(
            read_filter(options),
            is_finished=options.finished,
            before=options.after,
            limit=options.limit,
            using=options.database,
        )
        if options.json:
            write_json(self.stdout, {"jobs": [encode_job(job) for job in page.rows], "next_after": page.next_before})
        elif options.finished or any(state in _FINISHED for state in options.state or ()):
            rows = [finished_row(job) for job in page.rows]
            write_rows(self.stdout, FINISHED_HEAD, rows, empty="No finished job matches.")
        else:
            rows = [live_row(job) for job in page.rows]
            write_rows(self.stdout, LIVE_HEAD, rows, empty="No job that waits or runs matches.")
        tell_more(self.stderr, page)

    def show(self, options: Namespace) -> None:
        """Read one job and print it."""
        detail = read_job(options.id, using=options.database)
        if options.json:
            write_json(self.stdout, encode_detail(detail))
        else:
            write_detail(self.stdout, detail)

    def postpone(self, options: Namespace) -> None:
        """By a span or until a time."""
        act = partial(job_verbs.postpone_jobs, **place_ahead(options.until))
        self.change_selected(options, verbs.POSTPONE_JOB, act)

    def move(self, options: Namespace) -> None:
        """To a queue."""
        self.change_selected(options, verbs.MOVE_JOB, partial(job_verbs.move_jobs, queue=options.to))

    def set_priority(self, options: Namespace) -> None:
        """To a number or a level."""
        act = partial(job_verbs.set_job_priorities, priority=options.to)
        self.change_selected(options, verbs.SET_JOB_PRIORITY, act)


_FINISHED = {state.label for state in verbs.CLONE_JOB.states if state.is_finished}
