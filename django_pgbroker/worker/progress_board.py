"""The newest progress of running jobs, until a turn of the worker writes it. Filled by handlers, through their link."""

import threading
import time
from collections.abc import Callable, Sequence

from django_pgbroker import telemetry
from django_pgbroker.domain.progress import Progress, ProgressReport
from django_pgbroker.domain.records import AckReport, Verdict

#: However often handlers tell their progress, it is written no more often than this.
INTERVAL_SECONDS = 1.0


class ProgressBoard:
    """One report a claim, the newest; handlers fill it from any thread, the main thread takes and settles.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._reports: dict[int, ProgressReport] = {}
        self._refused: set[int] = set()
        self._taken: Sequence[ProgressReport] = ()
        self._written_at = -INTERVAL_SECONDS

    def report(self, job_id: int, lease_token: int, progress: Progress) -> None:
        """Replace what this claim has told before."""
        with self._lock:
            if lease_token not in self._refused:
                self._reports[lease_token] = ProgressReport(job_id, lease_token, progress)

    def mark(self, job_id: int, lease_token: int) -> None:
        """This job remembers steps or a cursor, which have to go when it ends."""
        with self._lock:
            if lease_token not in self._refused:
                self._reports.setdefault(lease_token, ProgressReport(job_id, lease_token, None))

    def take(self, verdicts: Sequence[Verdict]) -> Sequence[ProgressReport]:
        """What the next turn is to write: all of it once a second, and always that of jobs whose verdict it records.

        Args:
            verdicts: of this turn.
        """
        if not self._reports:
            return ()
        now = self._clock()
        with self._lock:
            if now - self._written_at >= INTERVAL_SECONDS:
                self._written_at = now
                self._taken, self._reports = list(self._reports.values()), {}
            else:
                ended = [verdict.lease_token for verdict in verdicts if verdict.lease_token in self._reports]
                self._taken = [self._reports.pop(token) for token in ended]
        # a job has two claims here when one was lost and the other is new: the newer token counts
        self._taken = list({report.job_id: report for report in sorted(self._taken)}.values())
        return self._taken

    def settle(self, answer: AckReport) -> None:
        """The turn is over: what was busy is kept for another one, unless it is out of date."""
        taken, self._taken = self._taken, ()
        if not any(answer):
            return
        self._keep([report for report in taken if report.job_id in answer.busy])
        for report in taken:
            if report.job_id in answer.stale:
                self._refuse(report)

    def _refuse(self, report: ProgressReport) -> None:
        with self._lock:
            self._refused.add(report.lease_token)
            self._reports.pop(report.lease_token, None)
        message = "its progress was refused: the claim is over"
        telemetry.info("progress.refused", message, job=report.job_id, token=report.lease_token)

    def put_back(self) -> None:
        """The turn failed: nothing of it was written."""
        taken, self._taken = self._taken, ()
        self._keep(taken)

    def _keep(self, reports: Sequence[ProgressReport]) -> None:
        with self._lock:
            for report in reports:
                newer = self._reports.get(report.lease_token)
                if newer is None or newer.progress is None:
                    self._reports[report.lease_token] = report
