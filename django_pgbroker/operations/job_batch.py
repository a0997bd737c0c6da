"""Carry out one verb on one batch of jobs: hold them, change them, write the audit, in one transaction."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

from django.db import OperationalError

from django_pgbroker.conf import get_settings
from django_pgbroker.domain.names import OWN_JOB_TYPES
from django_pgbroker.domain.states import JobState
from django_pgbroker.domain.verb_report import MOST_NAMED, Refusal, RefusalKind, VerbReport
from django_pgbroker.domain.verbs import CLONE_JOB, EDIT_JOB, REDRIVE_JOB, RETRY_JOB, Verb
from django_pgbroker.operations.actors import Actor
from django_pgbroker.operations.job_actions import Outcome, find_action
from django_pgbroker.operations.permissions import is_allowed
from django_pgbroker.runtime.announcer import announce_on_commit
from django_pgbroker.runtime.listener import name_cancel
from django_pgbroker.store.audit import write_audit
from django_pgbroker.store.errors import is_passing
from django_pgbroker.store.gateway import CallerGateway
from django_pgbroker.store.held_jobs import HeldJob, find_existing, lock_jobs

#: So many jobs are held and changed in one transaction.
BATCH = 500

#: A row that somebody holds for longer is left to them: the verb says so instead of holding a web request up.
_LOCK_TIMEOUT_MILLISECONDS = 3_000

#: A batch that a deadlock has ended is tried again so often, and so often jobs are looked for that come and go.
_MOST_ATTEMPTS = 5
_MOST_LOOKS = 20

#: More running jobs hear of their cancel by the next renewal of their lease, not by a message each.
_MOST_TOLD = 100

#: These bring jobs back or copy what they carry; the broker's own are asked for anew instead.
_NOT_ON_OWN_JOBS = frozenset({REDRIVE_JOB, EDIT_JOB, CLONE_JOB})


@dataclass
class JobChange:
    """One verb with its options, by one actor. A batch is one transaction, or a savepoint in the caller's.

    Args:
        verb: on jobs, or the purge of a queue.
        options: of the verb; strict JSON.
        actor: whose permissions and name count.
        gateway: the caller's.
        states: from which it takes jobs; by default all that the verb applies to.
        origin: what the audit's target says beside the jobs: the filter, the broker's own job.
    """

    verb: Verb
    options: Mapping[str, Any]
    actor: Actor
    gateway: CallerGateway
    states: frozenset[JobState] = frozenset()
    origin: Mapping[str, Any] = field(default_factory=dict)
    _permitted: dict[tuple[str, str], bool] = field(default_factory=dict)

    def change_by_id(self, ids: Sequence[int]) -> VerbReport:
        """Do it to the jobs of these ids, at most ``BATCH``; each is changed or refused with a reason.

        Raises:
            django.db.DatabaseError: as the server answered; nothing has changed.
        """
        report, left = VerbReport(self.verb.name), list(ids)
        for _ in range(_MOST_LOOKS):
            moved: list[int] = []
            report += self.change_held(partial(self._lock, left, moved), partial(_without, left, moved))
            if not moved:
                return report
            left = moved
        refusals = tuple(Refusal(job_id, RefusalKind.UNCHANGED, "it came and went at every look") for job_id in left)
        return report + VerbReport(self.verb.name, refused=len(refusals), refusals=refusals)

    def change_held(
        self,
        lock: Callable[[], Sequence[HeldJob]],
        named: Callable[[], Iterable[int]] = tuple,
        reach: Callable[[], int] | None = None,
    ) -> VerbReport:
        """Do it to the jobs that ``lock`` holds.

        Args:
            lock: called inside the transaction.
            named: answers, once they are held, which ids were meant; those that ``lock`` did not find are refused.
            reach: answers, once they are held, how far a filter has come with them; for the audit.

        Raises:
            django.db.DatabaseError: as the server answered; nothing has changed.
        """
        for attempt in count(1):
            try:
                with self.gateway.all_or_nothing(_LOCK_TIMEOUT_MILLISECONDS):
                    fit, refusals, outcome = self._change_locked(lock(), named, reach)
                break
            except OperationalError as error:
                if attempt >= _MOST_ATTEMPTS or not is_passing(error) or self.gateway.is_in_transaction:
                    raise
        settled = {*outcome.changed, *outcome.requested}
        refusals += [Refusal(job.id, RefusalKind.UNCHANGED, outcome.unchanged) for job in fit if job.id not in settled]
        self._announce(outcome)
        return VerbReport(
            self.verb.name,
            changed=len(outcome.changed),
            requested=len(outcome.requested),
            ids=tuple(outcome.changed),
            created=tuple(outcome.created),
            refused=len(refusals),
            refusals=tuple(sorted(refusals, key=lambda refusal: refusal.job_id)[:MOST_NAMED]),
        )

    def _change_locked(
        self, held: Sequence[HeldJob], named: Callable[[], Iterable[int]], reach: Callable[[], int] | None
    ) -> tuple[list[HeldJob], list[Refusal], Outcome]:
        fit, refusals = self._sort_out(held, named())
        outcome = find_action(self.verb)(self.gateway, fit, self.options, self.actor) if fit else Outcome([], {})
        if outcome.changed:
            done = set(outcome.changed)
            reached = {} if reach is None else {"reached": reach()}
            self._write_audit([job for job in fit if job.id in done], outcome, reached)
        return fit, refusals, outcome

    @property
    def origins(self) -> frozenset[JobState]:
        """The states that it takes jobs from."""
        return self.states or self.verb.states

    def _lock(self, ids: Sequence[int], moved: list[int]) -> list[HeldJob]:
        """Hold these jobs. One that was brought back between two looks is left for the next transaction.

        To lock it now would be out of order, and end in a deadlock with whoever locks in order.
        """
        held = lock_jobs(self.gateway, ids)
        missing = set(ids) - {job.id for job in held}
        moved[:] = find_existing(self.gateway, missing) if missing else []
        return held

    def _sort_out(self, held: Sequence[HeldJob], ids: Iterable[int]) -> tuple[list[HeldJob], list[Refusal]]:
        known = {job.id for job in held}
        refusals = [
            Refusal(job_id, RefusalKind.NOT_FOUND, "there is no such job: never committed, or its history is pruned")
            for job_id in ids
            if job_id not in known
        ]
        fit = []
        for job in held:
            if not self._is_permitted(job):
                why = f"not permitted in queue {job.queue!r} of tenant {job.tenant!r}"
                refusals.append(Refusal(job.id, RefusalKind.NOT_PERMITTED, why))
            elif self._is_out_of_reach(job):
                why = "it is a job of the broker itself: ask for what it does once more"
                refusals.append(Refusal(job.id, RefusalKind.WRONG_STATE, why))
            elif job.state not in self.origins:
                kind = RefusalKind.FINISHED if job.state.is_finished else RefusalKind.WRONG_STATE
                refusals.append(Refusal(job.id, kind, describe_wrong_state(self.verb, job.state)))
            else:
                fit.append(job)
        return fit, refusals

    def _is_out_of_reach(self, job: HeldJob) -> bool:
        returns = self.verb in _NOT_ON_OWN_JOBS or (self.verb == RETRY_JOB and job.state.is_finished)
        return returns and job.job_type in OWN_JOB_TYPES

    def _is_permitted(self, job: HeldJob) -> bool:
        """Whether the actor may do it to jobs of this queue and tenant, and in the queue that they go to."""
        return all(
            self._is_permitted_in(queue, job.tenant) for queue in {job.queue, self.options.get("queue") or job.queue}
        )

    def _is_permitted_in(self, queue: str, tenant: str) -> bool:
        place = (queue, tenant)
        if place not in self._permitted:
            self._permitted[place] = is_allowed(self.actor, self.verb, queue=queue, tenant=tenant)
        return self._permitted[place]

    def _write_audit(self, changed: Sequence[HeldJob], outcome: Outcome, reached: Mapping[str, int]) -> None:
        before: dict[str, Any] = {"states": dict(Counter(job.state.label for job in changed))}
        if len(changed) == 1:
            [job] = changed
            before = {"state": job.state.label, "queue": job.queue, "priority": job.priority}
        write_audit(
            self.gateway,
            actor=self.actor.name,
            source=self.actor.source,
            action=self.verb.name,
            target={
                "jobs": [job.id for job in changed],
                "queues": sorted({job.queue for job in changed}),
                **self.origin,
            },
            reason=self.actor.reason,
            before={**before, **(outcome.before or {})},
            after={**outcome.after, **reached},
            count=len(changed),
        )

    def _announce(self, outcome: Outcome) -> None:
        if not get_settings().listen:
            return
        for queue in sorted(outcome.woken) if outcome.changed else ():
            announce_on_commit(self.gateway.alias, queue, self.gateway.connection)
        for job_id in outcome.requested[:_MOST_TOLD]:
            announce_on_commit(self.gateway.alias, name_cancel(job_id), self.gateway.connection)


def _without(ids: Sequence[int], moved: Sequence[int]) -> list[int]:
    return sorted(set(ids) - set(moved))


def describe_wrong_state(verb: Verb, state: JobState) -> str:
    """Why a verb cannot take a job from this state, and from which it can."""
    possible = " or ".join(sorted(each.label for each in verb.states))
    when = "already" if state.is_finished else "now"
    return f"it is {state.label} {when}; {verb.label.lower()!r} is for jobs that are {possible}"
