"""A job that is claimed again here while the verdict of its lost claim is on its way: the new claim stays."""

import pytest

from django_pgbroker.domain.records import AckReport
from django_pgbroker.domain.verdicts import judge_result
from django_pgbroker.worker.holdings import Holdings
from tests.worker.claims import make_claim

NOTHING = frozenset()


def completed(claim):
    return judge_result(claim, None, 10, 1000)


@pytest.fixture
def first():
    return make_claim(7)


@pytest.fixture
def second(first):
    return first._replace(lease_token=first.lease_token + 1)


@pytest.fixture
def holdings(first, second):
    """The verdict of the first claim is in the turn when the second claim is taken in."""
    made = Holdings()
    made.add([first, make_claim(8)])
    made.accept([completed(first)])
    assert len(made.begin_turn(10)) == 1
    made.add([second])
    return made


def test_the_end_of_the_turn_lets_go_of_the_old_claim_alone(holdings, second):
    assert len(holdings) == 2, "the new claim and that of the other job"
    assert holdings.end_turn(AckReport(busy=NOTHING, stale=frozenset({7}))) == []
    assert second in holdings.claims
    assert len(holdings) == 2
    holdings.accept([completed(second)])
    [verdict] = holdings.begin_turn(10)
    assert verdict.lease_token == second.lease_token
    assert [claim for _, claim in holdings.end_turn(AckReport(NOTHING, NOTHING))] == [second]


def test_a_turn_that_failed_does_not_bring_the_old_verdict_back(holdings, second):
    holdings.abandon_turn()
    assert not holdings.has_verdicts
    assert second in holdings.claims
    assert len(holdings) == 2


def test_what_was_recorded_before_a_loss_ends_the_claim_that_it_is_of(holdings, first, second):
    holdings.abandon_turn()
    holdings.forget({7})
    assert second in holdings.claims
    holdings.accept([completed(second)])
    holdings.forget({7})
    assert [claim.id for claim in holdings.claims] == [8]
