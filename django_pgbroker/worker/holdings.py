"""What a worker process holds: claims, the verdicts that wait for a turn, and leases that it knows to be lost."""

from collections.abc import Collection, Iterable

from django_pgbroker import telemetry
from django_pgbroker.domain.records import AckReport, ClaimedJob, Verdict
from django_pgbroker.domain.states import Outcome


class Holdings:
    """Changed by the main thread alone; the lease keeper and the slots ask, and the keeper notes losses.

    A claim is held, and so renewed, until a turn has recorded its verdict.
    """

    def __init__(self) -> None:
        self._claims: dict[int, ClaimedJob] = {}
        self._waiting: list[Verdict] = []
        self._in_turn: list[Verdict] = []
        self._in_turn_tokens: frozenset[int] = frozenset()
        #: Claims made anew while a verdict of the old one is in the turn.
        self._replaced = 0
        #: Of transactional jobs: there is nothing to acknowledge, the next turn counts them.
        self._recorded: list[tuple[Verdict, ClaimedJob]] = []
        self._lost: set[int] = set()
        self._has_interruptions = False

    def __len__(self) -> int:
        """Claims whose verdict no turn has taken yet."""
        return len(self._claims) - len(self._in_turn) + self._replaced

    @property
    def is_empty(self) -> bool:
        """Whether nothing is held and nothing waits to be recorded."""
        return not (self._claims or self._waiting or self._recorded)

    @property
    def has_verdicts(self) -> bool:
        """Whether verdicts wait for a turn."""
        return bool(self._waiting)

    @property
    def has_recorded(self) -> bool:
        """Whether transactional jobs have ended and are not counted yet."""
        return bool(self._recorded)

    def take_recorded(self) -> list[tuple[Verdict, ClaimedJob]]:
        """Those, with the claims they ended; nothing of them is held any more."""
        recorded, self._recorded = self._recorded, []
        return recorded

    def put_back_recorded(self, recorded: list[tuple[Verdict, ClaimedJob]]) -> None:
        """The turn that was to count them failed."""
        self._recorded = recorded + self._recorded

    @property
    def claims(self) -> list[ClaimedJob]:
        """All that is held at this moment; safe to ask from any thread."""
        return list(self._claims.values())

    @property
    def open_claims(self) -> list[ClaimedJob]:
        """Claims whose verdict no turn has taken yet; for the main thread."""
        return [claim for claim in self._claims.values() if claim.lease_token not in self._in_turn_tokens]

    def find(self, job_id: int) -> ClaimedJob | None:
        """The claim of this job, if it is held."""
        return self._claims.get(job_id)

    @property
    def verdicts(self) -> list[Verdict]:
        """What waits for a turn."""
        return self._waiting

    def add(self, claims: Iterable[ClaimedJob]) -> None:
        """Hold new claims; one of a job that was lost here takes the place of the old one."""
        for claim in claims:
            if lost := self._claims.get(claim.id):
                self._give_up(lost)
            self._claims[claim.id] = claim

    def _give_up(self, lost: ClaimedJob) -> None:
        self._replaced += lost.lease_token in self._in_turn_tokens
        held = [verdict for verdict in self._waiting if verdict.job_id == lost.id]
        if held:
            self._waiting = [verdict for verdict in self._waiting if verdict.job_id != lost.id]
            _tell_refused(held)
        else:
            self._lost.add(lost.lease_token)

    def accept(self, verdicts: Iterable[Verdict]) -> None:
        """Take in verdicts of claims that are still held; those of claims that were given up change nothing."""
        for verdict in verdicts:
            claim = self._claims.get(verdict.job_id)
            if claim is None or claim.lease_token != verdict.lease_token:
                self._lost.discard(verdict.lease_token)
                _tell_refused([verdict])
                continue
            if verdict.is_recorded:
                self._lost.discard(verdict.lease_token)
                self._recorded.append((verdict, self._claims.pop(verdict.job_id)))
                continue
            if self._has_interruptions:
                # A handler that ends while its interruption waits to be recorded has decided for itself.
                self._waiting = [waiting for waiting in self._waiting if waiting.job_id != verdict.job_id]
            self._waiting.append(verdict)

    def interrupt(self, verdicts: Collection[Verdict]) -> None:
        """Take in interruptions of claims that have no verdict yet."""
        self._waiting += verdicts
        self._has_interruptions = self._has_interruptions or bool(verdicts)

    def unjudged(self) -> list[ClaimedJob]:
        """Claims without a verdict: they wait for a slot or run."""
        judged = {verdict.job_id for verdict in self._waiting}
        return [claim for claim in self._claims.values() if claim.id not in judged]

    def begin_turn(self, limit: int) -> list[Verdict]:
        """The verdicts of the next turn, until ``end_turn`` or ``abandon_turn``."""
        self._in_turn, self._waiting = self._waiting[:limit], self._waiting[limit:]
        self._in_turn_tokens = frozenset([verdict.lease_token for verdict in self._in_turn])
        return self._in_turn

    def abandon_turn(self) -> None:
        """The turn failed: its verdicts wait for another one."""
        current = [verdict for verdict in self._in_turn if self._is_current(verdict)]
        _tell_refused([verdict for verdict in self._in_turn if not self._is_current(verdict)])
        self._waiting = [*current, *self._waiting]
        self._clear_turn()

    def _clear_turn(self) -> None:
        self._in_turn, self._in_turn_tokens, self._replaced = [], frozenset(), 0

    def _is_current(self, verdict: Verdict) -> bool:
        """Whether the claim that this verdict ends is the one that is held."""
        claim = self._claims.get(verdict.job_id)
        return claim is not None and claim.lease_token == verdict.lease_token

    def end_turn(self, report: AckReport) -> list[tuple[Verdict, ClaimedJob]]:
        """Let go of what the turn recorded or was refused, and keep what was busy.

        Returns:
            The verdicts that are done with, and the claims they ended.
        """
        busy, stale = report
        done = [verdict for verdict in self._in_turn if verdict.job_id not in busy] if busy else self._in_turn
        kept = [verdict for verdict in self._in_turn if verdict.job_id in busy and self._is_current(verdict)]
        self._waiting = kept + self._waiting
        ended = [(verdict, self._claims.pop(verdict.job_id)) for verdict in done if self._is_current(verdict)]
        if stale:
            _tell_refused([verdict for verdict in done if verdict.job_id in stale])
        if self._lost:
            self._lost.difference_update(verdict.lease_token for verdict in done)
        self._clear_turn()
        return ended

    def forget(self, job_ids: Collection[int]) -> None:
        """Let go of claims whose verdicts are known to be recorded."""
        for verdict in self._waiting:
            if verdict.job_id in job_ids and self._is_current(verdict):
                del self._claims[verdict.job_id]
        self._waiting = [verdict for verdict in self._waiting if verdict.job_id not in job_ids]

    def clear(self) -> None:
        """Let go of everything; the leases bring the jobs back."""
        self._claims.clear()
        self._waiting = []
        self._recorded = []

    def note_lost(self, job_id: int, lease_token: int, *, is_certain: bool = True) -> None:
        """A renewal found this lease lost; told perhaps late, when the claim has been acknowledged or made anew.

        Args:
            job_id: of the job.
            lease_token: of the claim.
            is_certain: whether it is worth a word: a transactional job may just have been completed by its handler.
        """
        claim = self._claims.get(job_id)
        is_current = claim is not None and claim.lease_token == lease_token and lease_token not in self._in_turn_tokens
        if is_current and lease_token not in self._lost:
            self._lost.add(lease_token)
            if is_certain:
                _tell_lost(job_id, lease_token, "if its handler runs here, its verdict will change nothing")

    def is_lost(self, lease_token: int) -> bool:
        """Whether the lease of this claim is known to be lost."""
        return lease_token in self._lost


def _tell_refused(verdicts: Iterable[Verdict]) -> None:
    for verdict in verdicts:
        if verdict.outcome is not Outcome.RELEASED:
            _tell_lost(verdict.job_id, verdict.lease_token, f"the verdict {verdict.outcome.label} was refused")


def _tell_lost(job_id: int, token: int, message: str) -> None:
    telemetry.warning("lease.lost", message, job=job_id, token=token)
