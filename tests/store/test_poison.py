"""One verdict that PostgreSQL cannot store costs neither its neighbours nor the connection anything."""

import logging

import psycopg
import pytest

from django_pgbroker.domain.backoff import Constant
from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.domain.verdicts import judge_error, judge_result
from django_pgbroker.store.acknowledge import acknowledge_jobs
from django_pgbroker.worker.lane import Lane
from django_pgbroker.worker.turn import acknowledge_apart, take_turn
from tests.store.jobs import ERROR, completed, verdict

POISONS = {
    "a NUL inside JSON": {"result": r'"\u0000"'},
    "a lone surrogate inside JSON": {"result": r'"\ud800"'},
    "a number beyond numeric": {"result": "1e400000"},
    "no JSON at all": {"result": "{"},
    "a NUL in the reason": {"reason": "\x00"},
    "a NUL in the message of an error": {"error": ERROR._replace(message="\x00")},
    "a fingerprint beyond 64 bits": {"error": ERROR._replace(fingerprint=2**63)},
}


@pytest.fixture
def lane(session, shop):
    return Lane("default", 1, shop.queue, 0.05, 5.0, job_type_ids=f"{{{shop.job_type}}}")


@pytest.mark.parametrize("poison", POISONS)
def test_a_batch_with_a_poisoned_verdict_records_nothing_and_the_connection_goes_on(session, shop, lane, poison):
    """The same connection, with its prepared statements, in pipelines."""
    shop.fill(40)
    for _ in range(6):  # the statements are prepared, and planned for good
        claims = take_turn(session, [], [lane.look(5, 0.0)]).found[0].claims
        take_turn(session, [completed(claim) for claim in claims], [])
    claims = take_turn(session, [], [lane.look(5, 0.0)]).found[0].claims
    verdicts = [completed(claim) for claim in claims]
    verdicts[2] = verdicts[2]._replace(**POISONS[poison])
    before = shop.everything()

    with pytest.raises(psycopg.DataError):
        take_turn(session, verdicts, [lane.look(5, 0.0)])
    assert shop.everything() == before

    for _ in range(3):
        report = take_turn(session, [], [lane.look(1, 0.0)])
        [claim] = report.found[0].claims
        assert not any(take_turn(session, [completed(claim)], []).acknowledged)


@pytest.mark.parametrize("poison", POISONS)
def test_the_others_of_the_batch_are_recorded_and_the_culprit_bare(session, shop, poison, caplog):
    shop.fill(7)
    claims = shop.claim(session.gateway, 7)
    verdicts = [completed(claim, result='"fine"') for claim in claims]
    verdicts[4] = verdicts[4]._replace(**POISONS[poison])

    with caplog.at_level(logging.ERROR, "django_pgbroker"):
        report = acknowledge_apart(session, verdicts)

    assert not any(report.acknowledged)
    archived = [shop.archived(claim.id) for claim in claims]
    assert [row["state"] for row in archived] == [JobState.COMPLETED] * 7
    culprit = archived.pop(4)
    assert [row["result"] for row in archived] == ["fine"] * 6
    assert (culprit["result"], culprit["error_message"]) == (None, None)
    assert culprit["reason"].startswith("result or error not stored")
    assert [(record.event, record.fields["job"]) for record in caplog.records] == [("verdict.not_stored", claims[4].id)]
    assert shop.rows.one("select sum(jobs) from pgbroker.stat_minute") == 7


def test_a_poisoned_failure_is_still_a_failure(session, shop):
    claim = shop.claim_one(session.gateway)
    poisoned = verdict(claim, Outcome.FAILED, JobState.SCHEDULED, error=ERROR._replace(traceback="\x00"))
    acknowledge_apart(session, [poisoned])
    assert shop.rows.state_of(claim.id) is JobState.SCHEDULED
    assert [row["outcome"] for row in shop.executions(claim.id)] == [Outcome.FAILED]


class Hostile(Exception):
    """An exception that does its worst."""

    def __init__(self, text: object) -> None:
        super().__init__()
        self.text = text

    def __str__(self) -> str:
        if isinstance(self.text, Exception):
            raise self.text
        return str(self.text)


@pytest.mark.parametrize(
    "error",
    [
        Hostile("\x00"),
        Hostile("\ud800 alone"),
        Hostile('"}\\{",NULL'),
        Hostile("x" * 10_000_000),
        Hostile(ValueError("no text for you")),
        type("Čžš", (Exception,), {"__module__": "\x00\ud800"})("named by an enemy"),
        BaseExceptionGroup("several", [ValueError("\x00"), KeyboardInterrupt("\udfff")]),
    ],
    ids=["NUL", "surrogate", "quotes", "long", "raises", "class name", "group"],
)
def test_whatever_a_handler_raises_is_a_verdict_that_can_be_stored(gateway, shop, error):
    claim = shop.claim_one(gateway)
    judged = judge_error(claim, error, 10, Constant(60))
    assert not any(acknowledge_jobs(gateway, [judged]))
    assert shop.rows.state_of(claim.id) is JobState.SCHEDULED
    [row] = shop.executions(claim.id)
    assert row["error_class"]
    assert len(row["error_message"]) <= 2_000


def test_a_result_that_cannot_be_stored_leaves_the_job_completed_without_it(gateway, shop):
    values = ["\x00", "\ud800", float("nan"), 10**5_000, {1: 2}, object(), {"a": "x" * 100_000}]
    shop.fill(len(values))
    claims = shop.claim(gateway, len(values))
    verdicts = [judge_result(claim, value, 10, 65_536) for claim, value in zip(claims, values, strict=True)]
    assert not any(acknowledge_jobs(gateway, verdicts))
    for claim in claims:
        row = shop.archived(claim.id)
        assert (row["state"], row["result"]) == (JobState.COMPLETED, None)
        assert row["reason"].startswith("result not stored: ")
