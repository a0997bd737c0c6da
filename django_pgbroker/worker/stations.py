"""Match claims with pools: a station for each pool, with the lanes that feed it and the fetcher that sizes claims."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from django_pgbroker.domain.executor_kinds import ExecutorKind
from django_pgbroker.domain.records import ClaimedJob, Verdict
from django_pgbroker.worker.drain import hand_back_waiting
from django_pgbroker.worker.fetcher import Fetcher
from django_pgbroker.worker.holdings import Holdings
from django_pgbroker.worker.lane import Lane, Look
from django_pgbroker.worker.options import MOST_PLACES, WorkerOptions
from django_pgbroker.worker.pools.pool import Pool
from django_pgbroker.worker.pools.pools import Pools
from django_pgbroker.worker.session import Session
from django_pgbroker.worker.turn import Found

#: A backlog in which nothing moves for this long is handed back: other workers may have a free place.
_STALL_SECONDS = 1.0


class Station:
    """One pool and what feeds it.

    Args:
        pool: where the handlers run.
        fetcher: of the lanes of this pool.
    """

    def __init__(self, pool: Pool, fetcher: Fetcher) -> None:
        self.pool = pool
        self.fetcher = fetcher
        self._measured_at = time.monotonic()

    def measure(self, verdicts: Iterable[Verdict], holdings: Holdings) -> None:
        """Learn how long handlers take; what waits for them for too long goes back."""
        now = time.monotonic()
        run_microseconds = [verdict.run_microseconds for verdict in verdicts if verdict.outcome]
        if run_microseconds:
            self._measured_at = now
            self.fetcher.measure(len(run_microseconds), sum(run_microseconds) / 1_000_000)
        waiting = self.pool.backlog_size
        has_stalled = waiting and now - self._measured_at > _STALL_SECONDS
        if has_stalled:
            self.fetcher.forget_rate()
        if has_stalled or self.fetcher.is_too_long(waiting):
            hand_back_waiting(self.pool, holdings)


class Stations:
    """All stations of one worker.

    Args:
        stations: by the kind of their pool.
        kinds: of the pool that runs a job, by the ids of its queue and its type.
    """

    def __init__(self, stations: dict[ExecutorKind, Station], kinds: dict[tuple[int, int], ExecutorKind]) -> None:
        self._stations = stations
        self._kinds = kinds
        self._only = next(iter(stations.values())) if len(stations) == 1 else None

    def __iter__(self) -> Iterator[Station]:
        """Each station."""
        return iter(self._stations.values())

    def resize(self, concurrency: int) -> int:
        """Have the first pool run so many handlers at once: threads, where there are none tasks, else child processes.

        Returns:
            How many it runs, which may be fewer.
        """
        kind, station = next(iter(self._stations.items()))
        capacity = min(concurrency, MOST_PLACES[kind])
        station.pool.resize(capacity)
        station.fetcher.resize(capacity)
        return capacity

    def has_room(self, holdings: Holdings, found: Sequence[Found]) -> bool:
        """Whether a claim for some pool is worth a statement."""
        return any(station.fetcher.has_room(held) for station, held in self._count_held(holdings, found))

    def seconds_to_next_look(self, now: float) -> float:
        """How long until some queue is to be looked at."""
        return min(station.fetcher.seconds_to_next_look(now) for station in self)

    def plan(self, holdings: Holdings, found: Sequence[Found], now: float) -> list[Look]:
        """The looks of this turn."""
        counts = self._count_held(holdings, found)
        return [look for station, held in counts for look in station.fetcher.plan(held, now)]

    def _count_held(self, holdings: Holdings, found: Sequence[Found]) -> list[tuple[Station, int]]:
        """How many claims, whose verdict no turn has taken, each station holds."""
        if self._only:
            return [(self._only, len(holdings) + sum(map(len, found)))]
        counts = Counter(self._kind_of(claim) for claim in holdings.open_claims)
        for each in found:
            counts[each.look.lane.kind] += len(each)
        return [(station, counts[kind]) for kind, station in self._stations.items()]

    def _kind_of(self, claim: ClaimedJob) -> ExecutorKind:
        return self._kinds[claim.queue_id, claim.job_type_id]

    def give(self, lane: Lane, claims: Sequence[ClaimedJob]) -> None:
        """Hand the claims of one lane to its pool."""
        self._stations[lane.kind].pool.give(claims)

    def measure(self, verdicts: Sequence[Verdict], holdings: Holdings) -> None:
        """Learn from verdicts that have just arrived how long handlers take."""
        if self._only:
            self._only.measure(verdicts, holdings)
            return
        by_kind: dict[ExecutorKind, list[Verdict]] = {kind: [] for kind in self._stations}
        for verdict in verdicts:
            if claim := holdings.find(verdict.job_id):
                by_kind[self._kind_of(claim)].append(verdict)
        for kind, own in by_kind.items():
            self._stations[kind].measure(own, holdings)


def make_stations(session: Session, options: WorkerOptions, pools: Pools) -> Stations:
    """The stations for the lanes of a session."""
    stations = {}
    for kind in dict.fromkeys(lane.kind for lane in session.lanes):
        lanes = [lane for lane in session.lanes if lane.kind is kind]
        fetcher = Fetcher(
            lanes, options.capacity_of(kind), options.settings.prefetch_limit, is_strict=options.is_strict
        )
        stations[kind] = Station(pools[kind], fetcher)
    directory = session.directory
    kinds = {
        (queue_id, type_id): options.kind_of(job_type, name)
        for queue_id, name in directory.queues.items()
        for type_id, job_type in directory.job_types.items()
    }
    return Stations(stations, kinds)
