"""The doctor on jobs that wait where no live worker takes their type."""

import pytest

from django_pgbroker.domain.states import JobState
from django_pgbroker.operations.doctor.examination import EXAMINATIONS
from django_pgbroker.operations.doctor.finding import Level, Subject
from django_pgbroker.runtime.connections import open_gateway
from django_pgbroker.store.statement import statement


@pytest.fixture
def look(rows):
    return lambda: EXAMINATIONS["untaken_types"](Subject("default", rows.gateway))


@pytest.fixture
def shop(rows):
    """Two queues and a type; one worker serves ``default`` and takes the type, another serves ``mail`` without it."""
    charge, send = rows.job_type("shop.charge"), rows.job_type("mail.send")
    rows.worker(knows=[charge])
    serves_mail = rows.worker(knows=[send])
    rows.run("update pgbroker.worker set queues = '{\"mail\": 1}' where id = %s", serves_mail)
    return charge, send


def test_a_type_that_is_taken_in_another_queue_only_is_named_with_its_queue(rows, look, shop):
    charge, send = shop
    rows.job(rows.queue("default"), job_type_id=charge)
    rows.job(rows.queue("mail"), job_type_id=send)
    assert look().level is Level.OK

    rows.job(rows.queue("mail"), job_type_id=charge)
    found = look()
    assert found.level is Level.WARNING
    assert "No live worker takes shop.charge in the queue mail, where 1 such jobs wait." in found.summary
    assert found.figures == {"untaken": [{"queue": "mail", "job_type": "shop.charge", "waiting": 1}]}


def test_a_queue_that_no_worker_serves_is_one_of_them_and_a_paused_one_is_not(rows, look, shop):
    charge, _ = shop
    rows.job(rows.queue("mial"), job_type_id=charge)
    assert look().figures["untaken"][0]["queue"] == "mial"
    rows.run("update pgbroker.queue set paused_at = now() where name = 'mial'")
    assert look().level is Level.OK


def test_what_runs_or_is_taken_by_nobody_at_all_is_the_business_of_others(rows, look, shop):
    charge, _ = shop
    rows.job(rows.queue("mail"), JobState.RUNNING, job_type_id=charge)
    rows.job(rows.queue("mail"), job_type_id=rows.job_type("nobody.knows"))
    assert look().level is Level.OK


def test_while_no_worker_lives_the_topic_has_nothing_to_say(rows, look, shop):
    charge, _ = shop
    rows.job(rows.queue("mail"), job_type_id=charge)
    rows.run("update pgbroker.worker set stopped_at = now()")
    assert look().level is Level.OK


def test_the_head_of_each_queue_is_read_by_the_claim_index(rows, look, shop):
    text = statement("find_untaken_types").text % {"batch": 100, "lost_after": 5.0}
    gateway = open_gateway("default", "test plan")
    plan = "\n".join(row[0] for row in gateway.connection.execute(f"explain {text}").fetchall())
    gateway.connection.close()
    assert "using job_claim on job" in plan
