"""Carry out a verb on all jobs that match a filter, window after window, each batch a transaction of its own."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from django_pgbroker.domain.job_filter import JobFilter
from django_pgbroker.domain.states import LIVE_STATES, JobState
from django_pgbroker.domain.verb_report import VerbReport
from django_pgbroker.operations.job_batch import BATCH, JobChange
from django_pgbroker.store.held_jobs import Cutoff, HeldJob, find_window, lock_matching_jobs

#: One step looks at so many rows, matching or not.
_WINDOW = 20_000


@dataclass(frozen=True)
class Pace:
    """How fast a bulk verb goes.

    Args:
        per_second: most jobs a second; None sets no limit.
        wait: waits so many seconds.
    """

    per_second: float | None = None
    wait: Callable[[float], None] = time.sleep

    @property
    def batch(self) -> int:
        """How many jobs to change in one transaction."""
        return BATCH if self.per_second is None else max(1, min(BATCH, int(self.per_second)))

    def hold(self, changed: int, began_at: float) -> None:
        """Wait until that many jobs may have been changed since ``began_at``, in monotonic seconds."""
        if self.per_second is not None:
            self.wait(max(0.0, began_at + changed / self.per_second - time.monotonic()))


@dataclass
class BulkChange:
    """One verb on all that match.

    Args:
        change: the verb, its options and its actor.
        chosen: which jobs; of its states, all are live or all are finished.
        cutoff: what was there when it was asked for. Later jobs are left alone, so that none is taken twice.
        pace: how fast.
        on_step: told, between two transactions, what has been done so far; may raise to stop.
    """

    change: JobChange
    chosen: JobFilter
    cutoff: Cutoff
    pace: Pace = Pace()
    on_step: Callable[[VerbReport], None] = lambda _report: None

    def run(self, after: int = 0) -> VerbReport:
        """Do it to the jobs behind the id ``after``.

        Raises:
            django.db.DatabaseError: as the server answered; the batches before stay done.
        """
        report = VerbReport(self.change.verb.name)
        chosen, until = self._bound()
        while (
            edge := find_window(self.change.gateway, self._states, after=after, until=until, rows=_WINDOW)
        ) is not None:
            while after < edge:
                self.on_step(report)
                began_at = time.monotonic()
                batch = _Batch(self, chosen, after, edge)
                done = self.change.change_held(batch.lock, reach=batch.tell)
                report += done
                after = batch.reached
                self.pace.hold(done.changed, began_at)
        return report

    @property
    def _states(self) -> frozenset[JobState]:
        return self.change.origins

    def _bound(self) -> tuple[JobFilter, int | None]:
        if self._states <= LIVE_STATES:
            return self.chosen, self.cutoff.job_id
        before = self.chosen.finished_before
        return replace(self.chosen, finished_before=min(before, self.cutoff.at) if before else self.cutoff.at), None


@dataclass
class _Batch:
    """The next jobs of a window."""

    bulk: BulkChange
    chosen: JobFilter
    after: int
    edge: int
    reached: int = 0

    def lock(self) -> list[HeldJob]:
        held = lock_matching_jobs(
            self.bulk.change.gateway,
            self.chosen,
            self.bulk.change.origins,
            after=self.after,
            until=self.edge,
            batch=self.bulk.pace.batch,
        )
        self.reached = held[-1].id if len(held) == self.bulk.pace.batch else self.edge
        return held

    def tell(self) -> int:
        return self.reached
