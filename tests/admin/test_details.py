"""What the detail pages tell, and where their links lead."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_pgbroker import cancel_job
from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.models import ArchivedJob, Execution, JobPayload, Queue
from tests import factories
from tests.admin.screens import MODELS, address_of, detail_url, list_url, make_row

pytestmark = pytest.mark.django_db


def read(browser: Client, model: str, row: Any) -> str:
    response = browser.get(address_of(model, row))
    assert response.status_code == 200
    return response.content.decode()


def test_a_job_shows_its_payload_its_lease_and_its_executions(operator: Client):
    job = factories.JobFactory(running=True, attempt=2)
    JobPayload.objects.filter(pk=job.pk).update(arguments={"order_id": 7, "note": "Grüße"}, correlation_id="abc-1")
    execution = factories.ExecutionFactory(failed=True, job_id=job.pk, attempt=1, worker=job.worker)

    page = read(operator, "job", job)

    assert "{\n  &quot;note&quot;: &quot;Grüße&quot;,\n  &quot;order_id&quot;: 7\n}" in page
    assert "abc-1" in page
    assert str(job.lease_token) in page
    assert address_of("execution", execution) in page
    assert address_of("worker", job.worker) in page
    assert address_of("queue", job.queue) in page
    assert "Traceback of attempt 1" in page
    assert re.search(r"<pre[^>]*>Traceback \(most recent call last\):\nValueError: no such order</pre>", page)


def test_a_running_job_that_is_to_be_cancelled_shows_who_wants_it_and_why(operator: Client):
    job = factories.JobFactory(running=True)
    assert "Cancel requested" not in read(operator, "job", job)
    cancel_job(job.pk, actor="ada", reason="<b>ordered twice</b>")

    page = read(operator, "job", job)

    assert "Cancel requested" in page
    assert "ada: &lt;b&gt;ordered twice&lt;/b&gt;" in page


def test_a_dead_letter_shows_why_it_died(operator: Client):
    dead = factories.ArchivedJobFactory(dead=True, reason="attempts spent")

    page = read(operator, "deadletter", dead)

    assert "ValueError" in page
    assert "no such order" in page
    assert "attempts spent" in page
    assert '<span class="pgb-badge pgb-dead">dead</span>' in page


def test_a_result_is_shown_even_when_it_is_false(operator: Client):
    page = read(operator, "archivedjob", factories.ArchivedJobFactory(result=False))

    assert re.search(r"<h2>Result</h2>\s*<pre[^>]*>false</pre>", page)


def test_every_execution_listed_leads_to_its_own_page(operator: Client):
    execution = factories.ExecutionFactory(failed=True)
    listing = operator.get(list_url("execution")).content.decode()

    (relative,) = re.findall(rf'<th[^>]*><a href="({execution.job_id}-[^"?]*)', listing)
    page = operator.get(list_url("execution") + relative)

    assert page.status_code == 200
    assert page.context["original"] == execution
    assert detail_url("job", execution.job_id) in page.content.decode()


@pytest.mark.parametrize("address", ["5", "5-", "-5", "x-y", "1-2-3", f"{10**30}-1", "5-6"])
def test_an_execution_that_is_not_there_is_no_error(operator: Client, address: str):
    factories.ExecutionFactory()

    response = operator.get(detail_url("execution", address))

    assert response.status_code == 302


def test_a_job_that_has_finished_meanwhile_is_found_in_the_archive(operator: Client):
    archived = factories.ArchivedJobFactory()

    response = operator.get(detail_url("job", archived.pk))

    assert response.status_code == 302
    assert response.url == detail_url("archivedjob", archived.pk)


@pytest.mark.parametrize("model", ["job", "archivedjob", "deadletter", "queue", "worker"])
@pytest.mark.parametrize("object_id", ["12345678", "x", "-1", str(10**30), "²"])
def test_a_row_that_is_not_there_is_no_error(operator: Client, model: str, object_id: str):
    response = operator.get(detail_url(model, object_id))

    assert response.status_code == 302
    assert response.url == "/admin/"


def test_a_completed_job_is_no_dead_letter(operator: Client):
    completed = factories.ArchivedJobFactory()

    assert operator.get(detail_url("deadletter", completed.pk)).status_code == 302


def test_a_paused_queue_tells_when_by_whom_and_why(operator: Client):
    queue = factories.QueueFactory(
        paused_at=timezone.now() - timedelta(minutes=3), paused_by="ada", pause_reason="bank is down"
    )

    for page in (read(operator, "queue", queue), operator.get(list_url("queue")).content.decode()):
        assert "ada" in page
        assert "bank is down" in page
        assert "3 min ago" in page
        assert "pgb-paused" in page


def test_queues_come_with_the_longest_wait_first_and_the_age_of_their_figures(operator: Client):
    now = timezone.now()
    factories.QueueFactory(name="idle", sampled_at=now, pending_count=0)
    factories.QueueFactory(
        name="late", sampled_at=now, pending_count=100_001, oldest_pending_at=now - timedelta(hours=2)
    )
    factories.QueueFactory(
        name="brisk",
        sampled_at=now - timedelta(seconds=90),
        pending_count=2,
        oldest_pending_at=now - timedelta(seconds=2),
    )
    factories.QueueFactory(name="new")

    response = operator.get(list_url("queue"))
    page = response.content.decode()

    assert [queue.name for queue in response.context["cl"].result_list] == ["late", "brisk", "idle", "new"]
    assert "100,000+" in page
    assert "2 h" in page
    assert re.search(r'pgb-warning"><time[^>]*>9[01] s ago', page)
    assert '<span class="pgb-warning">never</span>' in page


def test_a_queue_leads_to_its_jobs_in_each_state(operator: Client):
    job = factories.JobFactory(scheduled=True)
    factories.JobFactory(queue=factories.QueueFactory(name="other"), scheduled=True)
    page = read(operator, "queue", job.queue)

    (link,) = re.findall(rf'href="([^"]*state={JobState.SCHEDULED.value}&amp;[^"]*)"', page)
    listed = operator.get(link.replace("&amp;", "&")).context["cl"].result_list

    assert [row.pk for row in listed] == [job.pk]


def test_a_silent_worker_is_shown_as_lost(operator: Client):
    now = timezone.now()
    workers = {
        "alive": factories.WorkerFactory(heartbeat_at=now - timedelta(seconds=20)),
        "lost": factories.WorkerFactory(heartbeat_at=now - timedelta(seconds=61)),
        "draining": factories.WorkerFactory(heartbeat_at=now, drain_requested_at=now),
        "stopped": factories.WorkerFactory(heartbeat_at=now, stopped_at=now, stop_reason="drained"),
    }

    for presence, worker in workers.items():
        assert f'<span class="pgb-badge pgb-{presence}">{presence}</span>' in read(operator, "worker", worker)


def test_a_worker_lists_the_jobs_it_holds(operator: Client):
    job = factories.JobFactory(running=True)
    other = factories.JobFactory(running=True)

    page = read(operator, "worker", job.worker)

    assert address_of("job", job) in page
    assert address_of("job", other) not in page


def test_ages_follow_the_clock_of_the_database(operator: Client):
    job = factories.JobFactory()
    with connection.cursor() as cursor:
        cursor.execute(
            "create or replace function pgbroker.clock() returns timestamptz language sql stable parallel safe "
            "as $$ select statement_timestamp() + interval '5 hours' $$"
        )

    page = read(operator, "job", job)

    assert re.search(r"30[01] min ago|5 h ago", page)


@pytest.mark.parametrize("state", [state for state in JobState if not state.is_finished])
def test_live_jobs_in_every_state_have_a_page(operator: Client, state: JobState):
    job = factories.JobFactory(
        **({"running": True} if state is JobState.RUNNING else {"state": state}), parked_reason=4
    )

    assert f"pgb-badge pgb-{state.label}" in read(operator, "job", job)


@pytest.mark.parametrize("outcome", [outcome for outcome in Outcome if outcome])
def test_executions_with_every_outcome_have_a_page(operator: Client, outcome: Outcome):
    execution = factories.ExecutionFactory(outcome=outcome, worker=None, run_microseconds=None)

    assert outcome.label.replace("_", " ") in read(operator, "execution", execution)


def test_a_job_without_payload_row_has_a_page(operator: Client):
    job = factories.JobFactory(payload=None)

    assert "Arguments" not in read(operator, "job", job)


@pytest.mark.parametrize("model", MODELS)
def test_a_detail_page_counts_nothing_and_costs_few_queries(operator: Client, model: str):
    row = make_row(model)
    if model in {"archivedjob", "deadletter"}:
        factories.ExecutionFactory.create_batch(60, failed=True, job_id=row.pk)
    operator.get(address_of(model, row))

    with CaptureQueriesContext(connection) as captured:
        read(operator, model, row)

    assert len(captured) <= 9
    assert not [query["sql"] for query in captured if "count(" in query["sql"].lower()]


def test_long_histories_are_cut_and_say_so(operator: Client):
    job = factories.ArchivedJobFactory()
    factories.ExecutionFactory.create_batch(60, failed=True, job_id=job.pk)

    page = read(operator, "archivedjob", job)

    assert page.count(f"/execution/{job.pk}-") == 50
    assert "The newest 50" in page
    assert ArchivedJob.objects.count() == 1
    assert Execution.objects.count() == 60
    assert Queue.objects.count() == 1


@pytest.mark.parametrize(
    ("model", "heading"),
    [("job", "Job {} (pending)"), ("queue", "Queue {}"), ("worker", "Worker {}"), ("deadletter", "Job {} (dead)")],
)
def test_the_heading_of_a_page_is_what_it_shows(operator: Client, model: str, heading: str):
    row = make_row(model)
    page = operator.get(address_of(model, row)).content.decode()
    name = row.name if model in {"queue", "worker"} else row.pk
    assert f"<h1>{heading.format(name)}</h1>" in page
