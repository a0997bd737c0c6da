"""Carry out a verb on jobs that are named by their ids. For handles, and for ``job_changes``."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import batched, islice

from django.db import DatabaseError, InterfaceError

from django_pgbroker.conf import get_settings
from django_pgbroker.domain.errors import (
    InvalidOption,
    JobFinished,
    JobNotFound,
    NotPermitted,
    VerbRefused,
    show_value,
)
from django_pgbroker.domain.options import LARGEST_ID, read_whole
from django_pgbroker.domain.verb_report import RefusalKind, VerbReport
from django_pgbroker.domain.verbs import Verb
from django_pgbroker.operations.actors import Acting, read_actor
from django_pgbroker.operations.databases import open_caller_gateway
from django_pgbroker.operations.job_batch import BATCH, JobChange
from django_pgbroker.operations.permissions import require
from django_pgbroker.store.errors import wrap_database_error

#: So many ids can be named at most; for more there are filters.
MOST_IDS = 10_000


def change_job(
    verb: Verb, job_id: int, *, actor: Acting, reason: str | None, source: str, using: str | None
) -> VerbReport:
    """Carry out a verb without options on one job; see ``cancel_jobs`` for arguments, answer and errors."""
    asked = read_actor(actor, source, reason)
    require(asked, verb)
    change = JobChange(verb, {}, asked, open_caller_gateway(using or get_settings().database))
    with wrapping_errors(verb):
        return change_named(change, [read_job_id(job_id)])


def raise_refusal(report: VerbReport) -> None:
    """Turn the refusal of a verb on one job into an error; nothing where it was changed.

    Raises:
        JobNotFound: there is no such job.
        NotPermitted: the user may not do it to this queue or tenant.
        JobFinished: the job has ended, and the verb is for jobs that have not.
        VerbRefused: the job's state does not allow it, or there was nothing to change.
    """
    if not report.refusals:
        return
    [refusal] = report.refusals
    match refusal.kind:
        case RefusalKind.NOT_FOUND:
            raise JobNotFound(f"there is no job {refusal.job_id}: never committed, or its history is pruned")
        case RefusalKind.NOT_PERMITTED:
            raise NotPermitted(f"job {refusal.job_id}: {refusal.why}")
        case RefusalKind.FINISHED:
            raise JobFinished(f"job {refusal.job_id}: {refusal.why}")
    raise VerbRefused(f"job {refusal.job_id}: {refusal.why}")


def change_named(change: JobChange, ids: Iterable[int]) -> VerbReport:
    """Carry out a change on the jobs of these ids, batch by batch.

    Raises:
        django.db.DatabaseError: as the server answered; the batches before stay done.
    """
    report = VerbReport(change.verb.name)
    for batch in batched(ids, BATCH):
        report += change.change_by_id(batch)
    return report


def read_ids(selection: int | Iterable[int]) -> list[int]:
    """The ids of a selection, sorted, each once.

    Raises:
        InvalidOption: one is no id, or there are more than ``MOST_IDS``.
    """
    if isinstance(selection, str | bytes | Mapping) or not isinstance(selection, int | Iterable):
        raise InvalidOption(f"jobs are named by an id, by ids or by a JobFilter, not by {show_value(selection)}")
    given = [selection] if isinstance(selection, int) else list(islice(selection, MOST_IDS + 1))
    if len(given) > MOST_IDS:
        raise InvalidOption(f"more than {MOST_IDS:,} ids; use a JobFilter")
    return sorted({read_job_id(job_id) for job_id in given})


def read_job_id(job_id: object) -> int:
    """A checked id.

    Raises:
        InvalidOption: no job can have it.
    """
    return read_whole("job_id", job_id, 1, LARGEST_ID)


@contextmanager
def wrapping_errors(verb: Verb) -> Iterator[None]:
    """Have errors of the database say what was tried.

    Raises:
        BrokerDatabaseError: the database refused.
    """
    try:
        yield
    except (DatabaseError, InterfaceError) as error:
        raise wrap_database_error(error, f"carry out {verb.name}") from error
