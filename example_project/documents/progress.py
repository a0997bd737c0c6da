"""How far a batch has come, and showing it: a live bar in a terminal, plain lines elsewhere. Used by the demo."""

import sys
import time
from collections.abc import Iterable
from itertools import batched
from typing import NamedTuple, Protocol, Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from django_pgbroker import JobState
from django_pgbroker.models import ArchivedJob, Job
from example_project.documents.models import Batch, CatalogueEntry, Document

_IDS_PER_QUERY = 1000


class Count(NamedTuple):
    """What became of a batch's jobs so far."""

    enqueued: int
    analysed: int = 0
    listed: int = 0
    dead: int = 0

    @property
    def done(self) -> int:
        """How many jobs have done their work or given up."""
        return self.analysed + self.listed + self.dead

    def __str__(self) -> str:
        return f"{self.analysed} analysed, {self.listed} listed, {self.dead} dead"


def count(batch: Batch, job_ids: set[int]) -> Count:
    """Count what the jobs left in the example's own tables, and the dead letters among them. Never scans history."""
    if not job_ids:
        return Count(0)
    dead = ArchivedJob.objects.filter(state=JobState.DEAD, id__gte=min(job_ids)).values_list("id", flat=True)
    return Count(
        enqueued=len(job_ids),
        analysed=Document.objects.filter(batch=batch, analysed_at__isnull=False).count(),
        listed=CatalogueEntry.objects.filter(document__batch=batch, listed_at__isnull=False).count(),
        dead=len(job_ids.intersection(dead)),
    )


def live_jobs(job_ids: Iterable[int]) -> set[int]:
    """Return those of ``job_ids`` that are not in the archive yet."""
    live: set[int] = set()
    for some in batched(job_ids, _IDS_PER_QUERY):
        live.update(Job.objects.filter(id__in=some).values_list("id", flat=True))
    return live


class Display(Protocol):
    """Shows counts while they change."""

    def show(self, now: Count) -> None:
        """Show ``now``."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


class Bar:
    """A bar that moves, for a terminal."""

    def __init__(self, total: int) -> None:
        self._progress = Progress(
            BarColumn(bar_width=20), MofNCompleteColumn(), TextColumn("{task.fields[words]}"), TimeElapsedColumn()
        )
        self._task = self._progress.add_task("jobs", total=total, words="")

    def show(self, now: Count) -> None:
        """Move the bar to ``now``."""
        self._progress.update(self._task, completed=now.done, words=str(now))

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()


class Lines:
    """A line a second while something changes, for logs and pipes."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._last: Count | None = None
        self._next_at = 0.0

    def show(self, now: Count) -> None:
        """Print ``now`` unless it was printed already, or another line was a moment ago."""
        if now != self._last and (time.monotonic() >= self._next_at or now.done == self._total):
            self._last, self._next_at = now, time.monotonic() + 1
            sys.stdout.write(f"{now.done}/{self._total} jobs: {now}\n")
            sys.stdout.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass


def display(total: int) -> Display:
    """Return what shows a batch of ``total`` jobs in the place that standard output goes to."""
    return Bar(total) if sys.stdout.isatty() else Lines(total)
