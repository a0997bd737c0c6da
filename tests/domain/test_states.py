"""The table of legal moves makes sense as a whole: nothing leaves the end, nothing is stuck before it."""

import pytest

from django_pgbroker.domain.states import (
    FINISHED_STATES,
    LIVE_STATES,
    TRANSITIONS,
    UNCOUNTED_OUTCOMES,
    JobState,
    Outcome,
    ParkedReason,
    is_legal,
)


def reachable(start: JobState) -> set[JobState]:
    seen: set[JobState] = set()
    to_see = [start]
    while to_see:
        state = to_see.pop()
        new = TRANSITIONS.get(state, frozenset()) - seen
        seen |= new
        to_see += new
    return seen


def test_every_state_is_live_or_finished_and_only_completed_leads_nowhere():
    assert set(TRANSITIONS) == set(JobState) - {JobState.COMPLETED}
    assert {JobState.COMPLETED, JobState.CANCELLED, JobState.EXPIRED, JobState.DEAD} == FINISHED_STATES
    assert set(JobState) == LIVE_STATES | FINISHED_STATES


@pytest.mark.parametrize("state", sorted(LIVE_STATES))
def test_from_every_live_state_a_job_can_still_run_and_complete(state):
    assert {JobState.RUNNING, JobState.COMPLETED} <= reachable(state)


@pytest.mark.parametrize("state", sorted(FINISHED_STATES))
def test_every_end_is_reached_from_somewhere(state):
    assert any(state in targets for targets in TRANSITIONS.values())


def test_only_a_pending_job_is_claimed_and_only_a_running_one_completes_or_dies():
    assert [origin for origin in LIVE_STATES if is_legal(origin, JobState.RUNNING)] == [JobState.PENDING]
    for end in (JobState.COMPLETED, JobState.DEAD):
        assert [origin for origin in LIVE_STATES if is_legal(origin, end)] == [JobState.RUNNING]


def test_a_running_job_never_expires_and_never_moves_to_itself():
    assert not is_legal(JobState.RUNNING, JobState.EXPIRED)
    assert not any(is_legal(state, state) for state in JobState)


@pytest.mark.parametrize("state", sorted(LIVE_STATES - {JobState.RUNNING}))
def test_every_waiting_job_can_be_cancelled_and_can_expire(state):
    assert is_legal(state, JobState.CANCELLED)
    assert is_legal(state, JobState.EXPIRED)


def test_a_completed_job_is_final_and_the_other_ends_lead_back_to_the_queue_alone():
    assert not any(is_legal(JobState.COMPLETED, target) for target in JobState)
    for end in FINISHED_STATES - {JobState.COMPLETED}:
        assert [target for target in LIVE_STATES if is_legal(end, target)] == [JobState.PENDING]


def test_a_dead_letter_can_be_discarded_and_no_other_end_becomes_another_one():
    moves = {(end, target) for end in FINISHED_STATES for target in FINISHED_STATES if is_legal(end, target)}
    assert moves == {(JobState.DEAD, JobState.CANCELLED)}


def test_a_job_that_failed_lost_its_worker_or_ran_out_of_time_spends_an_attempt_and_others_do_not():
    assert set(Outcome) - UNCOUNTED_OUTCOMES == {
        Outcome.COMPLETED, Outcome.FAILED, Outcome.TIMED_OUT, Outcome.CANCELLED, Outcome.LOST,
    }  # fmt: skip


def test_labels_are_plain_words():
    assert [state.label for state in (JobState.PENDING, JobState.DEAD)] == ["pending", "dead"]
    assert (Outcome.TIMED_OUT.label, ParkedReason.UNKNOWN_TYPE.label) == ("timed_out", "unknown type")


def test_the_numbers_stand_in_tables_and_never_change():
    """They are in rows of every installation, in the text of the statements and in CHECK constraints."""
    assert {state.name: int(state) for state in JobState} == {
        "PENDING": 0, "RUNNING": 1, "SCHEDULED": 2, "BLOCKED": 3, "PARKED": 4,
        "COMPLETED": 10, "CANCELLED": 11, "EXPIRED": 12, "DEAD": 13,
    }  # fmt: skip
    assert {outcome.name: int(outcome) for outcome in Outcome} == {
        "RELEASED": 0, "COMPLETED": 1, "FAILED": 2, "TIMED_OUT": 3, "SNOOZED": 4, "CANCELLED": 5, "LOST": 6,
        "INTERRUPTED": 7,
    }  # fmt: skip
