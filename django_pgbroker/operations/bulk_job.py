"""The broker's own job: a verb on very many jobs, resumed where it was, cancellable, with its progress shown."""

import json
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.contrib.auth import get_user_model

from django_pgbroker.conf import LONGEST_TIMEOUT_SECONDS, get_settings
from django_pgbroker.domain.executor_kinds import ExecutorKind
from django_pgbroker.domain.job_filter import JobFilter
from django_pgbroker.domain.names import BULK_JOB_TYPE
from django_pgbroker.domain.options import JobOptions
from django_pgbroker.domain.priorities import HIGHEST_PRIORITY
from django_pgbroker.domain.verb_report import VerbReport
from django_pgbroker.domain.verbs import Verb, find_verb
from django_pgbroker.domain.verdicts import Cancel
from django_pgbroker.operations.actors import Actor
from django_pgbroker.operations.bulk_changes import BulkChange, Pace
from django_pgbroker.operations.databases import open_caller_gateway
from django_pgbroker.operations.enqueue import store_job
from django_pgbroker.operations.job_batch import JobChange
from django_pgbroker.operations.job_types import job
from django_pgbroker.operations.permissions import is_allowed
from django_pgbroker.registry import JobType
from django_pgbroker.store.gateway import CallerGateway
from django_pgbroker.store.held_jobs import Cutoff, count_matching, find_bulk_progress
from django_pgbroker.store.queue_service import find_queue_service

#: The total that is shown is counted up to here.
_COUNTED = 100_000_000

#: While it keeps its pace it looks this often whether to stop.
_GLANCE_SECONDS = 0.2


@job(
    name=BULK_JOB_TYPE,
    executor=ExecutorKind.THREAD.value,
    timeout=LONGEST_TIMEOUT_SECONDS,
    max_attempts=20,
)
def change_jobs_in_background(
    *,
    verb: str,
    chosen: dict[str, Any],
    options: dict[str, Any],
    actor: dict[str, Any],
    cutoff: dict[str, Any],
    using: str,
    ctx: Any,
) -> dict[str, int]:
    """Do what ``leave_to_job`` was asked for; a killed attempt is gone on with where its last transaction ended."""
    request = _Request(
        find_verb(verb),
        JobFilter.from_json(chosen),
        options,
        actor=_read_actor(actor),
        gateway=open_caller_gateway(using),
        ctx=ctx,
    )
    return request.run(Cutoff(cutoff["job_id"], datetime.fromisoformat(cutoff["at"])))


def leave_to_job(change: JobChange, chosen: JobFilter, cutoff: Cutoff) -> int:
    """Enqueue the broker's own job that carries a change out; in the caller's transaction.

    Args:
        change: the verb, its options and its actor.
        chosen: which jobs.
        cutoff: what is there now.

    Returns:
        The id of that job.

    Raises:
        BrokerDatabaseError: the database refused; nothing is stored.
    """
    actor = change.actor
    arguments = {
        "verb": change.verb.name,
        "chosen": {**chosen.as_json(), "states": sorted(state.label for state in change.origins)},
        "options": dict(change.options),
        "actor": {
            "name": actor.name,
            "source": actor.source,
            "reason": actor.reason,
            "user": None if actor.user is None else str(actor.user.pk),
        },
        "cutoff": {"job_id": cutoff.job_id, "at": cutoff.at.isoformat()},
        "using": change.gateway.alias,
    }
    options = JobOptions(queue=name_bulk_queue(), priority=HIGHEST_PRIORITY, created_by=actor.name)
    return store_job(BULK_JOB, BULK_JOB.bind((), arguments), options, change.gateway.alias).id


def name_bulk_queue() -> str:
    """The queue in which the broker's own jobs wait."""
    settings = get_settings()
    return settings.bulk_queue or settings.default_queue


def describe_obstacle(gateway: CallerGateway) -> str:
    """Why nobody would carry such a job out now, in words; empty where somebody will.

    Raises:
        django.db.DatabaseError: the database did not answer.
    """
    queue = name_bulk_queue()
    is_paused, is_served = find_queue_service(gateway, queue)
    if is_paused:
        return f"its queue {queue!r} is paused"
    return "" if is_served else f"no live worker serves its queue {queue!r}"


#: Registered under its name.
BULK_JOB: JobType = change_jobs_in_background


class _Request:
    """One bulk verb in its job."""

    def __init__(
        self,
        verb: Verb,
        chosen: JobFilter,
        options: Mapping[str, Any],
        *,
        actor: Actor,
        gateway: CallerGateway,
        ctx: Any,
    ) -> None:
        self._ctx = ctx
        self._chosen = chosen
        self._change = JobChange(
            verb,
            options,
            actor,
            gateway,
            states=chosen.chosen_states,
            origin={"filter": chosen.as_json(), "bulk": ctx.id},
        )

    def run(self, cutoff: Cutoff) -> dict[str, int]:
        if not is_allowed(self._change.actor, self._change.verb):
            raise Cancel(f"{self._change.actor.name} may not do this any more")
        reached, changed = find_bulk_progress(self._change.gateway, json.dumps({"bulk": self._ctx.id}))
        left, _ = count_matching(self._change.gateway, self._chosen, self._change.origins, most=_COUNTED, rows=_COUNTED)
        total = changed + left

        def show(report: VerbReport) -> None:
            self._ctx.raise_if_stopped()
            done = changed + report.changed
            self._ctx.progress(done, max(total, done) or None, self._change.verb.done)

        pace = Pace(self._change.options.get("per_second"), wait=self._wait)
        report = BulkChange(self._change, self._chosen, cutoff, pace, show).run(after=reached)
        show(report)
        return {"changed": changed + report.changed, "refused": report.refused}

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self._ctx.raise_if_stopped()
            time.sleep(min(left, _GLANCE_SECONDS))


def _read_actor(stored: Mapping[str, Any]) -> Actor:
    user = None
    if stored["user"] is not None:
        user = get_user_model()._default_manager.filter(pk=stored["user"]).first()
        if user is None:
            raise Cancel(f"the user {stored['name']!r}, who asked for this, is gone")
    return Actor(stored["name"], stored["source"], stored["reason"], user)
