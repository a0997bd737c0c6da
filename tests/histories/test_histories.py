"""Ten thousand random steps in every run, any number in a drill; and broken statements that must not get through."""

import os
import time
from dataclasses import replace

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from django_pgbroker.store import gateway as gateway_module
from django_pgbroker.store.statement import statement
from tests.histories.database import BrokerOfHistories
from tests.histories.machine import Histories

#: Of a drill; DRILL_SECONDS makes it longer.
DRILL_SECONDS = float(os.environ.get("DRILL_SECONDS", "120"))

HISTORIES = settings(
    max_examples=60,
    stateful_step_count=100,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)


def run(broker: BrokerOfHistories, with_settings: settings) -> int:
    """Write histories; answers how many steps they took."""
    before = Histories.steps
    run_state_machine_as_test(lambda: Histories(broker), settings=with_settings)
    return Histories.steps - before


def test_the_tables_equal_the_model_after_each_of_ten_thousand_random_steps(broker):
    steps = 0
    while steps < 10_000:
        steps += run(broker, HISTORIES)


@pytest.mark.drill
def test_the_tables_equal_the_model_for_as_long_as_one_likes(broker):
    until = time.monotonic() + DRILL_SECONDS
    long = settings(HISTORIES, stateful_step_count=300, max_examples=20)
    while time.monotonic() < until:
        run(broker, long)


#: Statements with one fault each: its name, what is cut out, and what stands there instead.
MUTANTS = [
    ("acknowledge_jobs", "and lease_token = (%(tokens)s::bigint[])[width_bucket(id, %(ids)s::bigint[])]", ""),
    ("claim_jobs", "and (select paused_at is null from pgbroker.queue where id = %(queue_id)s::bigint)", ""),
    ("promote_jobs", "and available_at <= pgbroker.clock()", ""),
    ("acknowledge_jobs", "else '{0,4,7}' end", "else '{4,7}' end"),
    ("acknowledge_jobs", "where outcome > 0\n)", "where outcome > 0 and next_state >= 10\n)"),
    ("acknowledge_jobs", "- priority * (select", "- 0 * (select"),
    ("claim_jobs", "and expires_at > pgbroker.clock()", ""),
    ("claim_jobs", "where lapses = 0 or rank <=", "where lapses >= 0 or rank <="),
    ("expire_jobs", "state <> 1 and", ""),
    ("redrive_jobs", "then deaths else 0 end", "then deaths else deaths end"),
    ("postpone_jobs", "and expires_at > %(run_at)s::timestamptz", ""),
    ("move_jobs", "- priority * (select", "- 0 * (select"),
    ("run_jobs_now", "claim_order = pgbroker.clock()", "claim_order = claim_order"),
    ("renew_leases", "and lease_token = (%(tokens)s::bigint[])[width_bucket(id, %(ids)s::bigint[])]", ""),
]


@pytest.mark.parametrize(("name", "cut", "instead"), MUTANTS, ids=[f"{name}: {cut[:40]}" for name, cut, _ in MUTANTS])
def test_a_broken_statement_is_found(broker, monkeypatch, name, cut, instead):
    sound = statement(name)
    assert cut in sound.text
    broken = replace(sound, text=sound.text.replace(cut, instead))
    monkeypatch.setattr(gateway_module, "statement", lambda asked: broken if asked == name else statement(asked))

    # one found difference shows as AssertionError, several as a group of them
    with pytest.raises((AssertionError, ExceptionGroup, psycopg.Error)):
        run(broker, settings(HISTORIES, max_examples=300, phases=[Phase.generate], print_blob=False, derandomize=True))
