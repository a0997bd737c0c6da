"""``manage.py pgbroker_workers``: list workers, drain, stop and resize them, have one leave a queue."""

from argparse import Namespace
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any

from django.core.management.base import CommandParser

from django_pgbroker.domain import verbs
from django_pgbroker.domain.durations import describe_age, describe_seconds
from django_pgbroker.domain.errors import QueueNotServed, WorkerNotFound
from django_pgbroker.domain.presence import describe_queues
from django_pgbroker.domain.verb_report import Refusal, RefusalKind, VerbReport
from django_pgbroker.domain.verbs import Verb
from django_pgbroker.management.listing import write_json, write_rows
from django_pgbroker.management.paging import read_id
from django_pgbroker.management.verb_command import VerbCommand
from django_pgbroker.operations.overview import WorkerOverview, list_workers
from django_pgbroker.operations.workers import (
    drain_worker,
    pause_queue_on_worker,
    resize_worker,
    resume_queue_on_worker,
    stop_worker,
)

_HEAD = ("id", "name", "state", "heartbeat", "running", "queues", "leaves", "ordered", "host", "pid", "version", "up")


class Command(VerbCommand):
    """Lists workers and gives them orders."""

    help = (
        "Lists worker processes, and gives them orders, which they obey within a heartbeat and which end with their "
        "process. See `pgbroker_workers SUBCOMMAND --help`."
    )
    examples = """
manage.py pgbroker_workers list
manage.py pgbroker_workers drain 12 13 --reason 'a deploy' --yes
manage.py pgbroker_workers set 12 --concurrency 20
manage.py pgbroker_workers pause-queue bulk 12
"""

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the subcommands."""
        listing = self.add_subcommand(
            parser,
            "list",
            self.list_all,
            "List workers that run, and those that were found dead within the last hour.",
            "manage.py pgbroker_workers list\nmanage.py pgbroker_workers list --json",
        )
        self.add_read_options(listing)
        self._add(
            parser,
            "drain",
            self.drain,
            "Have workers finish what runs, take nothing more, and end.",
            "12\n12 13 --reason 'a deploy' --yes",
        )
        self._add(
            parser,
            "stop",
            self.stop,
            "Have workers end at once: what runs is interrupted, costs no attempt, and runs again elsewhere.",
            "12 --reason 'it eats memory'",
        )
        change = self._add(
            parser,
            "set",
            self.set,
            "Have workers run more or fewer handlers at once; what runs beyond that finishes.",
            "12 --concurrency 20",
        )
        text = (
            "threads; where a worker has none, tasks of its event loop, and where it has none either, child processes"
        )
        change.add_argument("--concurrency", type=int, metavar="N", required=True, help=text)
        self._add(
            parser,
            "pause-queue",
            self.pause_queue,
            "Have workers leave a queue that they serve: what they claimed ahead goes back, what runs finishes.",
            "bulk 12 13 --yes",
            with_queue=True,
        )
        self._add(
            parser,
            "resume-queue",
            self.resume_queue,
            "Have workers take a queue up again that they were told to leave.",
            "bulk 12",
            with_queue=True,
        )

    def _add(
        self,
        parser: CommandParser,
        name: str,
        run: Callable[[Namespace], None],
        purpose: str,
        examples: str,
        *,
        with_queue: bool = False,
    ) -> CommandParser:
        lines = "\n".join(f"manage.py pgbroker_workers {name} {line}" for line in examples.splitlines())
        own = self.add_subcommand(parser, name, run, purpose, lines)
        if with_queue:
            own.add_argument("queue", metavar="QUEUE", help="its name")
        own.add_argument("ids", type=read_id, nargs="+", metavar="ID", help="of the workers, as list shows them")
        self.add_verb_options(own)
        return own

    def list_all(self, options: Namespace) -> None:
        """Read all and print them."""
        workers = list_workers(options.database)
        if options.json:
            write_json(self.stdout, {"workers": [asdict(worker) for worker in workers]})
        else:
            write_rows(self.stdout, _HEAD, [_row(worker) for worker in workers], empty="No worker runs.")

    def drain(self, options: Namespace) -> None:
        """Drain each."""
        self._order(options, verbs.DRAIN_WORKER, drain_worker)

    def stop(self, options: Namespace) -> None:
        """Stop each."""
        self._order(options, verbs.STOP_WORKER, stop_worker)

    def set(self, options: Namespace) -> None:
        """Resize each."""
        self._order(options, verbs.RESIZE_WORKER, partial(resize_worker, concurrency=options.concurrency))

    def pause_queue(self, options: Namespace) -> None:
        """Have each leave it."""
        self._order(options, verbs.PAUSE_ON_WORKER, partial(pause_queue_on_worker, queue=options.queue))

    def resume_queue(self, options: Namespace) -> None:
        """Have each take it up."""
        self._order(options, verbs.RESUME_ON_WORKER, partial(resume_queue_on_worker, queue=options.queue))

    def _order(self, options: Namespace, verb: Verb, order: Callable[..., bool]) -> None:
        """Give each worker the order; those that cannot take it are told and do not hold up the others."""
        ids = sorted(set(options.ids))
        asking: dict[str, Any] = {**self.read_asking(options)}

        def give() -> VerbReport:
            given, refusals = [], []
            for worker_id in ids:
                try:
                    is_changed = order(worker_id, **asking)
                except WorkerNotFound as error:
                    refusals.append(Refusal(worker_id, RefusalKind.NOT_FOUND, str(error)))
                    continue
                except QueueNotServed as error:
                    refusals.append(Refusal(worker_id, RefusalKind.WRONG_STATE, str(error)))
                    continue
                if is_changed:
                    given.append(worker_id)
                else:
                    refusals.append(Refusal(worker_id, RefusalKind.UNCHANGED, "it has this order already"))
            return VerbReport(verb.name, len(given), ids=tuple(given), refused=len(refusals), refusals=tuple(refusals))

        self.carry_out(options, give, is_many=len(ids) > 1)


def _row(worker: WorkerOverview) -> tuple[str, ...]:
    return (
        str(worker.id),
        worker.name,
        worker.presence.value,
        describe_age(worker.heartbeat_seconds_ago),
        f"{worker.running}/{worker.concurrency}",
        describe_queues(worker.queues),
        ", ".join(worker.paused_queues),
        "" if worker.ordered_concurrency is None else str(worker.ordered_concurrency),
        worker.hostname,
        str(worker.process_id),
        worker.version,
        describe_seconds(worker.started_seconds_ago),
    )
