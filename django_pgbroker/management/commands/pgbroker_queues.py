"""``manage.py pgbroker_queues``: list queues, pause and resume them, change their ageing, purge what is pending."""

from argparse import Namespace
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any

from django.core.management.base import CommandError, CommandParser

from django_pgbroker.domain import verbs
from django_pgbroker.domain.durations import describe_seconds
from django_pgbroker.domain.errors import UnknownQueue, VerbRefused
from django_pgbroker.domain.job_filter import JobFilter
from django_pgbroker.domain.names import suggest
from django_pgbroker.domain.states import JobState
from django_pgbroker.domain.verb_report import VerbReport
from django_pgbroker.domain.verbs import Verb
from django_pgbroker.management.exit_codes import ExitCode
from django_pgbroker.management.job_selection import MOST_COUNTED, ROWS_COUNTED, add_foreground_option
from django_pgbroker.management.listing import write_json, write_moment, write_rows
from django_pgbroker.management.moments import MOMENT_HELP, read_moment
from django_pgbroker.management.verb_command import VerbCommand
from django_pgbroker.operations.actors import read_actor
from django_pgbroker.operations.job_changes import Asking, count_matching
from django_pgbroker.operations.job_verbs import purge_queue
from django_pgbroker.operations.overview import QueueOverview, describe_count, list_queues
from django_pgbroker.operations.permissions import require
from django_pgbroker.operations.queues import (
    QueueChange,
    pause_queue,
    read_ageing,
    resume_queue,
    set_queue,
)

_HEAD = (
    "queue",
    "pending",
    "oldest",
    "running",
    "scheduled",
    "parked",
    "blocked",
    "ageing",
    "paused",
    "until",
    "reason",
)


class Command(VerbCommand):
    """Lists queues and changes them."""

    help = "Lists queues, and does to them what operators do. See `pgbroker_queues SUBCOMMAND --help`."
    examples = """
manage.py pgbroker_queues list
manage.py pgbroker_queues pause mail --reason 'the relay is down' --until 2h
manage.py pgbroker_queues set mail --ageing 10
manage.py pgbroker_queues purge mial --dry-run
"""

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the subcommands."""
        listing = self.add_subcommand(
            parser,
            "list",
            self.list_all,
            "List queues, the longest wait first. Counts are sampled every few seconds: pgbroker_status tells how old.",
            "manage.py pgbroker_queues list\nmanage.py pgbroker_queues list --json",
        )
        self.add_read_options(listing)
        pause = self._add(
            parser,
            "pause",
            self.pause,
            "Stop the claims of a queue; what runs goes on. A second pause takes the place of the first.",
            "mail --reason 'the relay is down'\nmail --until 2h --as ada",
        )
        text = f"resume by itself then: {MOMENT_HELP} from now (default: it stays paused)"
        pause.add_argument("--until", type=read_moment, metavar="WHEN", help=text)
        self._add(parser, "resume", self.resume, "Let a paused queue be claimed again.", "mail")
        change = self._add(
            parser,
            "set",
            self.set,
            "Change by how much waiting outweighs priority, and bring the jobs that are there into the new order.",
            "mail --ageing 10",
        )
        text = "a job counts as one priority higher for every so many seconds that it waits; 0: priority counts nothing"
        change.add_argument("--ageing", type=int, metavar="SECONDS", required=True, help=text)
        purge = self._add(
            parser,
            "purge",
            self.purge,
            "Cancel all pending jobs of a queue; what is scheduled, blocked, parked or running stays.",
            "mial --dry-run\nmial --reason 'a typing error' --yes",
        )
        add_foreground_option(purge)

    def _add(
        self, parser: CommandParser, name: str, run: Callable[[Namespace], None], purpose: str, examples: str
    ) -> CommandParser:
        lines = "\n".join(f"manage.py pgbroker_queues {name} {line}" for line in examples.splitlines())
        own = self.add_subcommand(parser, name, run, purpose, lines)
        own.add_argument("queue", metavar="QUEUE", help="its name")
        self.add_verb_options(own)
        return own

    def list_all(self, options: Namespace) -> None:
        """Read all and print them."""
        queues = list_queues(options.database)
        if options.json:
            write_json(self.stdout, {"queues": [asdict(queue) | {"is_paused": queue.is_paused} for queue in queues]})
        else:
            write_rows(self.stdout, _HEAD, [_row(queue) for queue in queues], empty="No queue yet.")

    def pause(self, options: Namespace) -> None:
        """Pause one."""
        self._switch(
            options, verbs.PAUSE_QUEUE, partial(pause_queue, until=options.until), "is paused in this way already"
        )

    def resume(self, options: Namespace) -> None:
        """Resume one."""
        self._switch(options, verbs.RESUME_QUEUE, resume_queue, "is not paused")

    def _switch(self, options: Namespace, verb: Verb, act: Callable[..., bool], otherwise: str) -> None:
        asking = self.read_asking(options)

        def switch() -> VerbReport:
            if not act(options.queue, **asking):
                raise VerbRefused(f"the queue {options.queue!r} {otherwise}: nothing was changed")
            return VerbReport(verb.name, changed=1)

        self.carry_out(options, switch, is_many=False, target=options.queue)

    def set(self, options: Namespace) -> None:
        """Change the ageing of one. A trial looks at the setting alone: it must not hold the jobs up."""
        asking: dict[str, Any] = {**self.read_asking(options)}
        if options.dry_run:
            require(read_actor(asking["actor"], "command", options.reason), verbs.SET_QUEUE, queue=options.queue)
            read_ageing(options.ageing)
            queue = _find(options)
            change = QueueChange(queue.ageing_seconds != options.ageing, 0, is_complete=False)
        else:
            change = set_queue(options.queue, ageing_seconds=options.ageing, **asking)
        self._print_change(options, change)

    def _print_change(self, options: Namespace, change: QueueChange) -> None:
        would = "would be " if options.dry_run else ""
        sentence = (
            f"ageing of {options.queue} {would}{'changed' if change.is_changed else 'as it was'}: {options.ageing} s"
        )
        if not options.dry_run:
            sentence += f"; {change.reordered:,} jobs have another place now"
        if options.json:
            write_json(self.stdout, change._asdict() | {"verb": verbs.SET_QUEUE.name, "is_dry_run": options.dry_run})
        elif self.stdout.isatty():
            self.stdout.write(f"{sentence}.")
        else:
            rows = [(options.queue, f"{would}{'changed' if change.is_changed else 'unchanged'}", str(change.reordered))]
            write_rows(self.stdout, ("object", "outcome", "reordered"), rows)
        if not options.dry_run and not change.is_complete:
            raise CommandError(
                f"{sentence}. Some may be left in the old order: a transaction that enqueues stays open. Run this "
                "again later, with the same value",
                returncode=ExitCode.IN_PART,
            )
        if not (change.is_changed or change.reordered):
            raise CommandError(f"{sentence}: nothing was changed", returncode=ExitCode.NOTHING)

    def purge(self, options: Namespace) -> None:
        """Cancel what is pending."""
        asking = self.read_asking(options)
        once = partial(purge_queue, options.queue, **asking)
        wholly = Asking(**asking, in_background=False) if options.foreground else asking
        chosen = JobFilter(states=(JobState.PENDING.label,), queue=options.queue)
        self.carry_out(
            options,
            partial(purge_queue, options.queue, **wholly),
            is_many=True,
            noun="job",
            trial=once,
            matches=partial(
                count_matching, verbs.PURGE_QUEUE, chosen, most=MOST_COUNTED, rows=ROWS_COUNTED, using=options.database
            ),
        )


def _find(options: Namespace) -> QueueOverview:
    queues = {queue.name: queue for queue in list_queues(options.database)}
    if options.queue not in queues:
        raise UnknownQueue(f"there is no queue {options.queue!r}. {suggest(options.queue, queues)}".rstrip())
    return queues[options.queue]


def _row(queue: QueueOverview) -> tuple[str, ...]:
    oldest = queue.oldest_pending_seconds
    counts = (queue.running, queue.scheduled, queue.parked, queue.blocked)
    return (
        queue.name,
        describe_count(queue.pending),
        "" if oldest is None else describe_seconds(oldest),
        *map(describe_count, counts),
        f"{queue.ageing_seconds} s",
        f"by {queue.paused_by}" if queue.is_paused else "",
        write_moment(queue.resume_at),
        queue.pause_reason or "",
    )
