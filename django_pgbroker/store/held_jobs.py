"""Find and hold the jobs that a verb is for, so that nothing happens to them before it is done. For ``operations``."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from django_pgbroker.domain.job_filter import JobFilter
from django_pgbroker.domain.options import LARGEST_ID
from django_pgbroker.domain.states import FINISHED_STATES, LIVE_STATES, JobState
from django_pgbroker.store.arrays import array_of_integers
from django_pgbroker.store.gateway import CallerGateway, Params, Row


class HeldJob(NamedTuple):
    """One job whose row the caller's transaction holds; queue, tenant and job type are names."""

    id: int
    state: JobState
    queue: str
    tenant: str
    job_type: str
    priority: int


class Cutoff(NamedTuple):
    """What was there when a bulk verb began: jobs with ids up to ``job_id``, and those that ended before ``at``."""

    job_id: int
    at: datetime


def lock_jobs(gateway: CallerGateway, ids: Iterable[int]) -> list[HeldJob]:
    """Hold the live jobs of these ids, and those that have finished; the ids that are missing exist nowhere.

    Two statements: a job that finishes while the first one waits for it is found by the second.

    Raises:
        django.db.DatabaseError: as the server answered.
    """
    held = _held(gateway.fetch("lock_jobs", {"ids": array_of_integers(ids)}))
    missing = set(ids) - {job.id for job in held}
    if missing:
        held += _held(gateway.fetch("lock_archived_jobs", {"ids": array_of_integers(sorted(missing))}))
    return held


def find_existing(gateway: CallerGateway, ids: Iterable[int]) -> list[int]:
    """Which of these jobs exist, live or finished.

    Raises:
        django.db.DatabaseError: as the server answered.
    """
    return [int(job_id) for (job_id,) in gateway.fetch("find_existing_jobs", {"ids": array_of_integers(sorted(ids))})]


def lock_matching_jobs(
    gateway: CallerGateway, chosen: JobFilter, states: Iterable[JobState], *, after: int, until: int, batch: int
) -> list[HeldJob]:
    """Hold the next jobs that match, by ascending id.

    Args:
        gateway: the caller's, in a transaction.
        chosen: the filter.
        states: live ones, or finished ones.
        after: look behind this id.
        until: look up to this id.
        batch: most jobs.

    Raises:
        django.db.DatabaseError: as the server answered.
    """
    params = {"after": after, "until": until, "batch": batch}
    if _are_live(states):
        return _held(gateway.fetch("lock_matching_jobs", {**_live_params(chosen, states), **params}))
    return _held(gateway.fetch("lock_matching_archived_jobs", {**_archived_params(chosen, states), **params}))


def find_window(
    gateway: CallerGateway, states: Iterable[JobState], *, after: int, until: int | None, rows: int
) -> int | None:
    """The last id among the next ``rows`` rows behind ``after``; None when none is left up to ``until``.

    Raises:
        django.db.DatabaseError: as the server answered.
    """
    params: Params = {"after": after, "until": LARGEST_ID if until is None else until, "rows": rows}
    if _are_live(states):
        [(edge,)] = gateway.fetch("find_job_window", params)
    else:
        [(edge,)] = gateway.fetch("find_archived_window", {**params, "states": array_of_integers(states)})
    return None if edge is None else int(edge)


def count_matching(
    gateway: CallerGateway, chosen: JobFilter, states: Iterable[JobState], *, most: int, rows: int
) -> tuple[int, bool]:
    """How many jobs match, at most one more than ``most``, among ``rows`` rows; and whether those were all.

    Raises:
        django.db.DatabaseError: as the server answered.
    """
    params = {"most": most, "rows": rows}
    if _are_live(states):
        [(count, is_complete)] = gateway.fetch("count_matching_jobs", {**_live_params(chosen, states), **params})
    else:
        [(count, is_complete)] = gateway.fetch(
            "count_matching_archived_jobs", {**_archived_params(chosen, states), **params}
        )
    return int(count), bool(is_complete)


def find_cutoff(gateway: CallerGateway) -> Cutoff:
    """What is there now.

    Raises:
        django.db.DatabaseError: as the server answered.
    """
    [row] = gateway.fetch("find_cutoff")
    return Cutoff._make(row)


def find_bulk_progress(gateway: CallerGateway, target: str) -> tuple[int, int]:
    """The last id that a bulk verb has reached, and how many jobs it has changed, by its entries in the audit log.

    Args:
        gateway: the caller's.
        target: JSON text that the targets of its entries contain.

    Raises:
        django.db.DatabaseError: as the server answered.
    """
    [(reached, changed)] = gateway.fetch("find_bulk_progress", {"target": target})
    return int(reached), int(changed)


def _held(rows: Iterable[Row]) -> list[HeldJob]:
    return [HeldJob(job_id, JobState(state), *rest) for job_id, state, *rest in rows]


def _are_live(states: Iterable[JobState]) -> bool:
    chosen = frozenset(states)
    assert chosen <= LIVE_STATES or chosen <= FINISHED_STATES, "one table at a time"
    return chosen <= LIVE_STATES


def _live_params(chosen: JobFilter, states: Iterable[JobState]) -> dict[str, object]:
    return {
        "states": array_of_integers(sorted(states)),
        "queue": chosen.queue,
        "job_type": chosen.job_type,
        "tenant": chosen.tenant,
        "tried": chosen.tried,
        "created_after": chosen.created_after,
        "created_before": chosen.created_before,
    }


def _archived_params(chosen: JobFilter, states: Iterable[JobState]) -> dict[str, object]:
    return {
        **_live_params(chosen, states),
        "error_class": chosen.error_class,
        "error": chosen.error,
        "finished_after": chosen.finished_after,
        "finished_before": chosen.finished_before,
    }
