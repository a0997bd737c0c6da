"""What each verb does to jobs whose rows are held: its statement, what the audit says, whom to wake."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django_pgbroker.conf import get_settings
from django_pgbroker.domain import verbs
from django_pgbroker.domain.payload import encode_arguments
from django_pgbroker.domain.states import JobState
from django_pgbroker.domain.verbs import Verb
from django_pgbroker.operations.actors import Actor
from django_pgbroker.registry import registry
from django_pgbroker.store import job_changes as store
from django_pgbroker.store.gateway import CallerGateway
from django_pgbroker.store.held_jobs import HeldJob


@dataclass(frozen=True)
class Outcome:
    """What an action did.

    Args:
        changed: ids.
        after: what the audit says of the jobs from now on; strict JSON.
        before: what it says beside their states.
        woken: the queues whose workers must look, because jobs may begin earlier than these know.
        requested: ids of running jobs that are asked to end, by this action or before.
        created: ids of new jobs.
        unchanged: why a held job that is not in ``changed`` was left as it is.
    """

    changed: Sequence[int]
    after: Mapping[str, Any]
    before: Mapping[str, Any] | None = None
    woken: frozenset[str] = frozenset()
    requested: Sequence[int] = ()
    created: Sequence[int] = ()
    unchanged: str = "it has changed meanwhile"


type Options = Mapping[str, Any]
type Action = Callable[[CallerGateway, Sequence[HeldJob], Options, Actor], Outcome]


def find_action(verb: Verb) -> Action:
    """The action of a verb on jobs."""
    return _ACTIONS[verb]


def _cancel(gateway: CallerGateway, held: Sequence[HeldJob], _options: Options, actor: Actor) -> Outcome:
    running = [job.id for job in held if job.state is JobState.RUNNING]
    waiting = [job.id for job in held if job.state is not JobState.RUNNING]
    ended = store.cancel_jobs(gateway, waiting, actor.name, actor.reason) if waiting else []
    asked = store.request_cancels(gateway, running, actor.name, actor.reason) if running else []
    after: dict[str, Any] = {}
    if ended:
        after["state"] = JobState.CANCELLED.label
    if asked:
        after["cancel_requested"] = len(asked)
    return Outcome(
        sorted(ended + asked), after, requested=running, unchanged="its cancel was requested before; it still runs"
    )


def _run_now(gateway: CallerGateway, held: Sequence[HeldJob], _options: Options, _actor: Actor) -> Outcome:
    changed = store.run_jobs_now(gateway, [job.id for job in held])
    return Outcome(changed, {"state": JobState.PENDING.label}, woken=_queues_of(held))


def _retry(gateway: CallerGateway, held: Sequence[HeldJob], _options: Options, actor: Actor) -> Outcome:
    scheduled = [job for job in held if not job.state.is_finished]
    finished = [job for job in held if job.state.is_finished]
    changed = list(_run_now(gateway, scheduled, {}, actor).changed) if scheduled else []
    if finished:
        changed += _redrive(gateway, finished, {"keep_attempts": False}, actor).changed
    return Outcome(sorted(changed), {"state": JobState.PENDING.label}, woken=_queues_of(held))


def _redrive(gateway: CallerGateway, held: Sequence[HeldJob], options: Options, _actor: Actor) -> Outcome:
    keep_attempts = bool(options.get("keep_attempts"))
    changed = store.redrive_jobs(
        gateway,
        [job.id for job in held],
        keep_attempts=keep_attempts,
        timeout_seconds=get_settings().default_timeout_seconds,
    )
    after = {"state": JobState.PENDING.label, "attempts": "kept" if keep_attempts else "reset"}
    return Outcome(changed, after, woken=_queues_of(held))


def _discard(gateway: CallerGateway, held: Sequence[HeldJob], _options: Options, actor: Actor) -> Outcome:
    changed = store.discard_jobs(gateway, [job.id for job in held], actor.name, actor.reason)
    return Outcome(changed, {"state": JobState.CANCELLED.label})


def _postpone(gateway: CallerGateway, held: Sequence[HeldJob], options: Options, _actor: Actor) -> Outcome:
    changed = store.postpone_jobs(gateway, [job.id for job in held], datetime.fromisoformat(options["run_at"]))
    after = {"state": JobState.SCHEDULED.label, "available_at": options["run_at"]}
    return Outcome(changed, after, unchanged="it would expire before it could start")


def _set_priority(gateway: CallerGateway, held: Sequence[HeldJob], options: Options, _actor: Actor) -> Outcome:
    priority = options["priority"]
    changed = store.set_job_priorities(gateway, [job.id for job in held], priority)
    return Outcome(
        changed, {"priority": priority}, woken=_queues_of(held), unchanged=f"its priority is {priority} already"
    )


def _move(gateway: CallerGateway, held: Sequence[HeldJob], options: Options, _actor: Actor) -> Outcome:
    queue = options["queue"]
    changed = store.move_jobs(gateway, [job.id for job in held], queue)
    return Outcome(
        changed, {"queue": queue}, woken=frozenset({queue}), unchanged=f"it waits in queue {queue!r} already"
    )


def _release(gateway: CallerGateway, held: Sequence[HeldJob], _options: Options, _actor: Actor) -> Outcome:
    changed = store.release_jobs(gateway, [job.id for job in held])
    return Outcome(changed, {"state": JobState.PENDING.label}, woken=_queues_of(held))


def _edit(gateway: CallerGateway, held: Sequence[HeldJob], options: Options, _actor: Actor) -> Outcome:
    [job] = held
    arguments, version = _encode(job.job_type, options["arguments"])
    before = store.edit_job(gateway, job.id, arguments, version, is_dead_letter=job.state.is_finished)
    if before is None:
        return Outcome([], {}, unchanged="its payload is gone")
    return Outcome([job.id], {"arguments": json.loads(arguments)}, before={"arguments": json.loads(before)})


def _clone(gateway: CallerGateway, held: Sequence[HeldJob], options: Options, actor: Actor) -> Outcome:
    [job] = held
    arguments, version = None, None
    if "arguments" in options:
        arguments, version = _encode(job.job_type, options["arguments"])
    new_id = store.clone_job(
        gateway,
        job.id,
        actor.name,
        queue=options.get("queue"),
        priority=options.get("priority"),
        arguments=arguments,
        version=version,
        timeout_seconds=get_settings().default_timeout_seconds,
    )
    if new_id is None:
        return Outcome([], {}, unchanged="its payload is gone")
    queue = options.get("queue") or job.queue
    return Outcome([job.id], {"clone": new_id, "queue": queue}, woken=frozenset({queue}), created=[new_id])


def _encode(job_type: str, arguments: Mapping[str, object]) -> tuple[str, int]:
    """Arguments as they are stored, checked against the handler, and the version of the payload."""
    known = registry.get(job_type)
    return encode_arguments(known.bind((), arguments), get_settings().payload_limit_bytes), known.version


def _queues_of(held: Sequence[HeldJob]) -> frozenset[str]:
    return frozenset(job.queue for job in held)


_ACTIONS: dict[Verb, Action] = {
    verbs.CANCEL_JOB: _cancel,
    verbs.RUN_JOB_NOW: _run_now,
    verbs.RETRY_JOB: _retry,
    verbs.POSTPONE_JOB: _postpone,
    verbs.SET_JOB_PRIORITY: _set_priority,
    verbs.MOVE_JOB: _move,
    verbs.RELEASE_JOB: _release,
    verbs.EDIT_JOB: _edit,
    verbs.CLONE_JOB: _clone,
    verbs.REDRIVE_JOB: _redrive,
    verbs.DISCARD_JOB: _discard,
    verbs.PURGE_QUEUE: _cancel,
}
