"""Which signals tell what became of claims. Used by workers after their turns."""

from collections.abc import Collection, Iterable
from typing import Any

from django.dispatch import Signal

from django_pgbroker.domain.records import ClaimedJob, Verdict
from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.domain.stops import Stop, StopKind
from django_pgbroker.runtime.signal_sender import Sending, send_later
from django_pgbroker.signals import (
    job_cancelled,
    job_dead,
    job_failed,
    job_lost,
    job_retried,
    job_succeeded,
)
from django_pgbroker.worker.executor import Directory
from django_pgbroker.worker.stops import Stops

_ENDINGS = {
    JobState.COMPLETED: job_succeeded,
    JobState.CANCELLED: job_cancelled,
    JobState.DEAD: job_dead,
    JobState.SCHEDULED: job_retried,
    JobState.PENDING: job_retried,
}

_FAILED = (Outcome.FAILED, Outcome.TIMED_OUT)

_OF_TURNS = (job_succeeded, job_cancelled, job_dead, job_failed, job_lost, job_retried)


def tell_ended(
    ended: Iterable[tuple[Verdict, ClaimedJob]],
    directory: Directory,
    *,
    refused: Collection[int] = (),
    stops: Stops,
) -> None:
    """Have signals sent for claims whose verdicts are committed; without receivers this costs nothing.

    Args:
        ended: verdicts and their claims.
        directory: what the ids in the claims stand for.
        refused: ids of jobs whose verdict changed nothing, for the claim was lost.
        stops: of the claims; one that was to be cancelled has ended as such, whatever its verdict says.
    """
    if not any(signal.receivers for signal in _OF_TURNS):
        return
    send_later(
        [
            sending
            for verdict, claim in ended
            if verdict.job_id not in refused
            for sending in _choose(verdict, claim, directory, is_cancelled=_is_cancelled(stops.find(claim.lease_token)))
        ]
    )


def _is_cancelled(stop: Stop | None) -> bool:
    return stop is not None and stop.kind is StopKind.CANCELLED


def _choose(verdict: Verdict, claim: ClaimedJob, directory: Directory, *, is_cancelled: bool) -> list[Sending]:
    signals: list[Signal] = []
    if verdict.outcome in _FAILED and not is_cancelled:
        signals.append(job_failed)
    if verdict.outcome is Outcome.LOST:
        signals.append(job_lost)
    if is_cancelled:
        signals.append(job_cancelled)
    elif verdict.outcome in _FAILED or verdict.next_state >= JobState.COMPLETED:
        signals.append(_ENDINGS[verdict.next_state])
    signals = [signal for signal in signals if signal.receivers]
    if not signals:
        return []
    job_type = directory.job_types[claim.job_type_id]
    told = {
        "job_id": claim.id,
        "job_type": job_type.name,
        "queue": directory.queues[claim.queue_id],
        "tenant": directory.tenants.get(claim.tenant_id),
        "attempt": claim.attempt,
        "outcome": verdict.outcome,
        "reason": verdict.reason,
        "error": verdict.error,
        "run_seconds": verdict.run_microseconds / 1_000_000,
    }
    more: dict[Signal, dict[str, Any]] = {
        job_retried: {"delay_seconds": verdict.delay_seconds},
        job_lost: {"next_state": verdict.next_state, "worker_id": None},
    }
    return [Sending(signal, job_type, told | more.get(signal, {})) for signal in signals]
