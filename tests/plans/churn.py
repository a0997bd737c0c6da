"""A worker at full speed on a stream that never ends, and what its claims cost."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import quantiles
from typing import Any, NamedTuple

from django_pgbroker.runtime.connections import open_gateway
from django_pgbroker.store.claim import NO_FLOOR
from django_pgbroker.worker.lane import Lane, Look
from tests.maintenance.rows import Rows

#: The producer fills up to here, so that a claim never finds less than it asks for.
_BACKLOG = 5_000
_A_TIME = 500


class Cost(NamedTuple):
    """One claim: when, how long the server took, how many jobs it gave, and whether it began at the head."""

    at: float
    seconds: float
    jobs: int
    is_from_the_head: bool


class Costs(list[Cost]):
    """The claims of one stretch of time."""

    @property
    def p99(self) -> float:
        """Of the seconds."""
        return quantiles([cost.seconds for cost in self], n=100)[98]

    def __str__(self) -> str:
        seconds = quantiles([cost.seconds for cost in self], n=100)
        lasted = self[-1].at - self[0].at
        return (
            f"{len(self)} claims in {lasted:.0f} s, {sum(cost.jobs for cost in self) / lasted:,.0f} jobs/s, "
            f"{sum(cost.is_from_the_head for cost in self)} of them from the head; ms: "
            f"median {seconds[49] * 1000:.2f}, p99 {seconds[98] * 1000:.2f}, "
            f"max {max(cost.seconds for cost in self) * 1000:.2f}"
        )


class Meter:
    """Watches the lanes of the workers in this process."""

    def __init__(self, monkeypatch: Any) -> None:
        self._costs: list[Cost] = []
        learn = Lane.learn

        def learn_and_note(lane: Lane, look: Look, claims: Any, promotion: Any, now: float) -> None:
            if claims:
                seconds = max(claim.claim_seconds for claim in claims)
                self._costs.append(Cost(now, seconds, len(claims), look.floor == NO_FLOOR))
            learn(lane, look, claims, promotion, now)

        monkeypatch.setattr(Lane, "learn", learn_and_note)

    def watch(self, seconds: float) -> Costs:
        """The claims of so many seconds from now."""
        began = len(self._costs)
        time.sleep(seconds)
        return Costs(self._costs[began:])


@contextmanager
def stream(job_type: str) -> Iterator[None]:
    """Enqueue jobs of this type as fast as they are run, and announce them as ``enqueue`` does."""
    rows = Rows(open_gateway("default", "test producer"))
    stopped = threading.Event()
    producer = threading.Thread(target=_produce, args=(rows, rows.queue(), rows.job_type(job_type), stopped))
    producer.start()
    try:
        yield
    finally:
        stopped.set()
        producer.join(10)
        rows.gateway.connection.close()


def _produce(rows: Rows, queue_id: int, job_type_id: int, stopped: threading.Event) -> None:
    while not stopped.wait(0.02):
        waiting = rows.one(
            "select count(*) from (select from pgbroker.job where queue_id = %s and state = 0"
            " and claim_order > now() - interval '10 s' limit %s) as head",
            queue_id, _BACKLOG,
        )  # fmt: skip
        for _ in range((_BACKLOG - waiting) // _A_TIME):
            rows.run(
                "with new as (insert into pgbroker.job (tenant_id, queue_id, job_type_id, state, created_at,"
                " available_at, claim_order) select (select min(id) from pgbroker.tenant), %s, %s, 0, at, at, at"
                " from generate_series(1, %s) as n cross join lateral"
                " (select clock_timestamp() + n * interval '1 microsecond') as now (at) returning id)"
                " insert into pgbroker.job_payload (job_id, arguments) select id, '{}' from new",
                queue_id, job_type_id, _A_TIME,
            )  # fmt: skip
            rows.run("select pg_notify('pgbroker_wake', 'default')")


@contextmanager
def old_snapshot() -> Iterator[None]:
    """Another session reads, and stays in its transaction: what is deleted from now on cannot be cleared away."""
    reader = open_gateway("default", "test reader", idle_in_transaction_session_timeout="0").connection
    try:
        reader.execute("begin isolation level repeatable read")
        reader.execute("select count(*) from pgbroker.queue")
        yield
    finally:
        reader.close()
