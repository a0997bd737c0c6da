"""What a person who watches the broker wants to see, in five cheap reads. For ``pgbroker_status --watch``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db.models import F, Q, Sum
from django.db.models.functions import Left

from django_pgbroker.domain.states import Outcome
from django_pgbroker.models import DeadLetter, StatMinute
from django_pgbroker.models.clock import Clock
from django_pgbroker.operations.clock import read_clock
from django_pgbroker.operations.databases import open_caller_gateway
from django_pgbroker.operations.overview import QueueOverview, WorkerOverview, list_queues, list_workers

#: Dead letters on the board, and characters of their errors.
SHOWN_DEAD_LETTERS = 10
_ERROR_START = 200

_FAILURES = (Outcome.FAILED, Outcome.TIMED_OUT, Outcome.LOST)


class Rate(NamedTuple):
    """Executions a second, over the minute before this one and what has passed of this one."""

    done: float = 0.0
    failed: float = 0.0


class DeadLine(NamedTuple):
    """One dead letter in a line."""

    job_id: int
    died_seconds_ago: float
    job_type: str
    error: str


@dataclass(frozen=True, slots=True)
class Board:
    """The broker at one moment.

    Args:
        read_at: by the clock of the database.
        queues: with their sampled depths, the longest wait first.
        workers: that run, or were found dead within the last hour.
        rates: name of a queue to its rate, for those with executions in the last minutes.
        dead_letters: the latest enqueued first.
    """

    read_at: datetime
    queues: Sequence[QueueOverview]
    workers: Sequence[WorkerOverview]
    rates: Mapping[str, Rate]
    dead_letters: tuple[DeadLine, ...]


def read_board(using: str) -> Board:
    """Read it all. Unknown job types are left to ``read_overview``: to look for them costs more with every queue.

    Raises:
        ConfigurationError: there is no such alias, or it is not PostgreSQL.
        django.db.Error: the database is away, or the broker's migrations have not run there.
    """
    open_caller_gateway(using)
    read_at = read_clock(using)
    return Board(
        read_at=read_at,
        queues=list_queues(using),
        workers=list_workers(using),
        rates=_read_rates(using, read_at),
        dead_letters=_read_dead_letters(using),
    )


def _read_rates(using: str, read_at: datetime) -> dict[str, Rate]:
    begin = read_at.replace(second=0, microsecond=0) - timedelta(minutes=1)
    seconds = (read_at - begin).total_seconds()
    recent = StatMinute.objects.using(using).filter(minute__gte=begin).values_list("queue__name")
    sums = recent.annotate(
        done=Sum("jobs", filter=Q(outcome=Outcome.COMPLETED), default=0),
        failed=Sum("jobs", filter=Q(outcome__in=_FAILURES), default=0),
    )
    return {name: Rate(float(done) / seconds, float(failed) / seconds) for name, done, failed in sums}


def _read_dead_letters(using: str) -> tuple[DeadLine, ...]:
    newest = (
        DeadLetter.objects.using(using)
        .order_by("-pk")
        .annotate(age=Clock() - F("finished_at"), error_start=Left("error_message", _ERROR_START))
    )
    rows = newest.values_list("pk", "age", "job_type__name", "error_class", "error_start", "reason")
    return tuple(
        DeadLine(
            job_id,
            max(age.total_seconds(), 0.0),
            job_type,
            ": ".join(part for part in (error_class, error_start) if part) or reason or "",
        )
        for job_id, age, job_type, error_class, error_start, reason in rows[:SHOWN_DEAD_LETTERS]
    )
