"""Compare what the jobs of a batch left in the database with a plain loop over the same files. Used by the demo."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import batched
from pathlib import Path
from typing import NamedTuple

from django_pgbroker import JobState
from django_pgbroker.models import ArchivedJob, Execution
from example_project.documents.analysis import Analysis, analyse_file
from example_project.documents.models import Batch, CatalogueEntry, Document

_IDS_PER_QUERY = 1000


class Totals(NamedTuple):
    """Sums over all files that can be read."""

    files: int
    lines: int
    tokens: int


class Report(NamedTuple):
    """What became of a batch. ``complaints`` is empty only if everything is as the plain loop says."""

    completed: int
    dead: int
    lost: int
    retried: int
    broken: int
    by_jobs: Totals
    by_plain_loop: Totals
    complaints: list[str]


class Plain(NamedTuple):
    """What the plain loop found in the readable files, and the name of the error of each other one."""

    analyses: dict[str, Analysis]
    errors: dict[str, str]


def compare(batch: Batch, paths: Sequence[Path]) -> Report:
    """Read every file of ``paths`` again, without any job, and compare it with its document and the end of its job."""
    plain = run_plain_loop(paths)
    documents = list(Document.objects.filter(batch=batch))
    entries = list(CatalogueEntry.objects.filter(document__batch=batch))
    rows: list[Document | CatalogueEntry] = [*documents, *entries]
    job_ids = [row.job_id for row in rows if row.job_id is not None]
    archived = {job.id: job for job in archived_jobs(job_ids)}
    states = [job.state for job in archived.values()]
    complaints = [
        *complain_about_files(documents, paths),
        *complain_about_results(documents, plain),
        *complain_about_ends(documents, plain, archived),
        *complain_about_tracebacks(documents, plain),
        *complain_about_entries(entries, archived),
    ]
    analysed = [document for document in documents if document.analysed_at]
    return Report(
        completed=states.count(JobState.COMPLETED),
        dead=states.count(JobState.DEAD),
        lost=len(documents) + len(entries) - states.count(JobState.COMPLETED) - states.count(JobState.DEAD),
        retried=sum(job.state == JobState.COMPLETED and job.attempt > 1 for job in archived.values()),
        broken=len(plain.errors),
        by_jobs=Totals(
            len(analysed),
            sum(document.line_count or 0 for document in analysed),
            sum(document.token_count or 0 for document in analysed),
        ),
        by_plain_loop=Totals(
            len(plain.analyses),
            sum(analysis.line_count for analysis in plain.analyses.values()),
            sum(analysis.token_count for analysis in plain.analyses.values()),
        ),
        complaints=complaints,
    )


def run_plain_loop(paths: Iterable[Path]) -> Plain:
    """Analyse ``paths`` one after the other in this process."""
    plain = Plain({}, {})
    for path in paths:
        try:
            plain.analyses[str(path)] = analyse_file(path)
        except Exception as error:
            plain.errors[str(path)] = type(error).__name__
    return plain


def archived_jobs(job_ids: Iterable[int]) -> Iterator[ArchivedJob]:
    """Yield the finished ones among ``job_ids``."""
    for some in batched(job_ids, _IDS_PER_QUERY):
        yield from ArchivedJob.objects.filter(id__in=some).only("id", "state", "attempt")


def complain_about_files(documents: Iterable[Document], paths: Iterable[Path]) -> Iterator[str]:
    """Every file has a document, and every document is one of the files."""
    known, given = {document.path for document in documents}, {str(path) for path in paths}
    yield from (f"{path}: there is no document for this file" for path in sorted(given - known))
    yield from (f"{path}: a document that nobody asked for" for path in sorted(known - given))


def complain_about_results(documents: Iterable[Document], plain: Plain) -> Iterator[str]:
    """What a job saved is what the plain loop finds; where that fails, nothing was saved."""
    for document in documents:
        saved = Analysis(document.encoding, document.line_count or 0, document.token_count or 0, document.sha256)
        expected = plain.analyses.get(document.path)
        if expected is None and document.analysed_at:
            yield f"{document.path}: analysed by the job, yet the plain loop cannot read it"
        elif expected is not None and (document.analysed_at is None or saved != expected):
            yield f"{document.path}: the document says {saved}, the plain loop {expected}"


def complain_about_ends(documents: Iterable[Document], plain: Plain, archived: dict[int, ArchivedJob]) -> Iterator[str]:
    """The jobs of readable files are completed, those of the others are dead letters."""
    for document in documents:
        expected = JobState.DEAD if document.path in plain.errors else JobState.COMPLETED
        job = archived.get(document.job_id or 0)
        if job is None:
            yield f"{document.path}: job {document.job_id} is not in the archive"
        elif job.state != expected:
            yield f"{document.path}: job {job.id} is {JobState(job.state).label}, not {expected.label}"


def complain_about_tracebacks(documents: Iterable[Document], plain: Plain) -> Iterator[str]:
    """Every attempt on a broken file left the traceback of the very error that the plain loop meets."""
    for document in documents:
        if document.path not in plain.errors:
            continue
        tracebacks = Execution.objects.for_job(document.job_id or 0).values_list("traceback", flat=True)
        error = plain.errors[document.path]
        if not tracebacks or any(error not in (text or "") for text in tracebacks):
            yield f"{document.path}: job {document.job_id} has no traceback of its {error} for each attempt"


def complain_about_entries(entries: Iterable[CatalogueEntry], archived: dict[int, ArchivedJob]) -> Iterator[str]:
    """Every entry was refused once, and listed by a later attempt of the same job."""
    for entry in entries:
        job = archived.get(entry.job_id or 0)
        if job is None:
            yield f"{entry}: job {entry.job_id} is not in the archive"
        elif job.state != JobState.COMPLETED or job.attempt < 2 or entry.contact_count < 2 or entry.listed_at is None:
            yield (
                f"{entry}: job {job.id} is {JobState(job.state).label} after {job.attempt} attempts "
                f"and {entry.contact_count} contacts, not listed on a retry"
            )
