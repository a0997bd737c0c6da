"""What the buttons, the questions and the messages say, and that nothing reaches a row but by a verb."""

import re
from collections.abc import Callable
from datetime import timedelta
from html.parser import HTMLParser
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_pgbroker.admin.choice import describe_filter, remark_on_matches
from django_pgbroker.admin.job_acts import CANCEL
from django_pgbroker.domain.job_filter import JobFilter
from django_pgbroker.domain.states import JobState
from django_pgbroker.models import ArchivedJob, AuditEntry, Job, Queue, Worker
from django_pgbroker.operations.job_changes import Matches
from tests import factories
from tests.admin.addresses import ADDRESSES
from tests.admin.screens import detail_url, list_url
from tests.admin.test_paging import archive

pytestmark = pytest.mark.django_db


def verb_url(model: str, row: Any, verb: str) -> str:
    return f"{list_url(model)}{row.pk}/{verb}/"


def messages_of(page: Any) -> list[str]:
    return [str(message) for message in page.context["messages"]]


def act_on(browser: Client, model: str, rows: list[Any], action: str, **values: Any) -> Any:
    sent = {"action": action, "index": "0", "_selected_action": [row.pk for row in rows], **values}
    return browser.post(list_url(model), sent, follow=True)


def test_a_cancel_asks_for_a_reason_and_then_ends_the_job(operator: Client):
    job = factories.JobFactory(queue=factories.QueueFactory(name="mail"))

    asked = operator.post(verb_url("job", job, "cancel"))
    without = operator.post(verb_url("job", job, "cancel"), {"confirmed": "1", "reason": " "})
    assert "Cancel job" in asked.content.decode()
    assert without.context["form"].errors == {"reason": ["This field is required."]}
    assert Job.objects.exists()
    done = operator.post(verb_url("job", job, "cancel"), {"confirmed": "1", "reason": "ordered twice"}, follow=True)

    assert [re.sub("<[^>]*>", "", each) for each in messages_of(done)] == [f"Job {job.pk} cancelled."]
    assert ArchivedJob.objects.get().reason == "cancelled by root: ordered twice"


def test_a_running_job_is_said_to_be_asked_to_end(operator: Client):
    job = factories.JobFactory(running=True)
    done = operator.post(verb_url("job", job, "cancel"), {"confirmed": "1", "reason": "stuck"}, follow=True)
    assert messages_of(done) == ["1 running job asked to end."]
    assert "root: stuck" in done.content.decode()


def test_a_job_tells_on_its_page_who_did_what_to_it(operator: Client, staff_with: Callable[..., Client]):
    job = factories.JobFactory(scheduled=True)
    values = {"confirmed": "1", "priority": "9", "reason": "vip <b>"}
    operator.post(verb_url("job", job, "set_priority"), values)

    page = operator.get(detail_url("job", job.pk)).content.decode()

    section = page.partition("What was done to it")[2]
    assert "job.set_priority" in section
    assert "<td>root</td>" in section
    assert "vip &lt;b&gt;" in section
    assert "What was done to it" not in staff_with("view_job").get(detail_url("job", job.pk)).content.decode()


def test_raw_columns_sent_along_are_ignored(operator: Client):
    job = factories.JobFactory(running=True)
    forged = {"state": "10", "lease_token": "0", "attempt": "-1", "tenant": "9", "job_type": "other", "worker_id": ""}
    values = {"confirmed": "1", "reason": "x", **forged}
    before = Job.objects.values().get()

    operator.post(verb_url("job", job, "cancel"), values)

    changed = {name: value for name, value in Job.objects.values().get().items() if value != before[name]}
    assert set(changed) == {"cancel_requested_at", "cancel_requested_by", "cancel_reason"}


def test_a_verb_that_the_state_does_not_allow_is_refused_in_words(operator: Client):
    job = factories.JobFactory(running=True)
    page = operator.post(verb_url("job", job, "run_now"), follow=True)
    [message] = messages_of(page)
    assert message.startswith(f"1 job not changed. {job.pk}: ")
    assert not AuditEntry.objects.exists()


def test_buttons_follow_the_state(operator: Client):
    def buttons(**fields: Any) -> set[str]:
        page = operator.get(detail_url("job", factories.JobFactory(**fields).pk)).content.decode()
        return set(re.findall(r'/change/|/job/\d+/(\w+)/"', page)) - {""}

    always = {"clone"}
    waiting = always | {"cancel", "set_priority", "move", "edit"}
    assert buttons() == waiting | {"postpone"}
    assert buttons(scheduled=True) == waiting | {"run_now", "retry", "postpone"}
    assert buttons(running=True) == always | {"cancel"}
    assert buttons(state=JobState.PARKED) == waiting | {"release"}


def test_a_job_that_ended_meanwhile_is_shown_where_it_is(operator: Client):
    archived = factories.ArchivedJobFactory()
    page = operator.post(verb_url("job", archived, "cancel"), {"confirmed": "1", "reason": "x"}, follow=True)
    assert page.redirect_chain[-1][0] == detail_url("archivedjob", archived.pk)


def test_a_redriven_dead_letter_leaves_its_list(operator: Client):
    dead = factories.ArchivedJobFactory(dead=True)
    page = operator.post(verb_url("deadletter", dead, "redrive"), {"confirmed": "1"}, follow=True)
    assert page.redirect_chain == [(list_url("deadletter"), 302)]
    assert detail_url("job", dead.pk) in messages_of(page)[0]
    assert Job.objects.get().pk == dead.pk


def test_a_selection_is_named_and_counted_before_it_is_taken(operator: Client):
    mail = factories.QueueFactory(name="mail")
    jobs = factories.JobFactory.create_batch(3, queue=mail)

    asked = act_on(operator, "job", jobs, "cancel")
    page = asked.content.decode()
    assert "Cancel 3 jobs in queue mail" in page
    assert f"{jobs[0].pk}: shop.send_receipt, queue mail" in page
    assert Job.objects.count() == 3
    done = act_on(operator, "job", jobs, "cancel", confirmed="1", reason="x")

    assert messages_of(done) == ["3 jobs cancelled."]
    assert not Job.objects.exists()


def test_a_selection_of_one_needs_no_question_where_nothing_is_asked_for(operator: Client):
    one, two = factories.JobFactory.create_batch(2, scheduled=True)
    assert len(messages_of(act_on(operator, "job", [one], "run_now"))) == 1
    asked = act_on(operator, "job", [one, two], "run_now")
    assert "Run 2 jobs in queue default now" in asked.content.decode()
    assert {job.state for job in Job.objects.all()} == {JobState.PENDING, JobState.SCHEDULED}


def test_what_could_not_be_done_to_a_selection_is_told_job_by_job(operator: Client):
    scheduled, running = factories.JobFactory(scheduled=True), factories.JobFactory(running=True)
    done, refused = messages_of(act_on(operator, "job", [scheduled, running], "run_now", confirmed="1"))
    assert done.endswith("made due.")
    assert refused.startswith(f"1 job not changed. {running.pk}: ")


def test_a_long_selection_is_named_in_part(operator: Client):
    page = act_on(operator, "job", factories.JobFactory.create_batch(13), "cancel").content.decode()
    assert "and 3 more" in page


def test_an_empty_selection_is_a_hint(operator: Client):
    factories.JobFactory()
    assert "must be selected" in messages_of(act_on(operator, "job", [], "cancel"))[0]
    forged = {"action": "run_now", "index": "0", "_selected_action": ["x", "-1", "²"]}
    assert operator.post(list_url("job"), forged).status_code == 302


def test_all_that_match_the_filters_are_counted_and_taken_and_no_others(operator: Client):
    mail, other = factories.QueueFactory(name="mail"), factories.QueueFactory(name="other")
    factories.JobFactory.create_batch(3, queue=mail, scheduled=True)
    factories.JobFactory(queue=mail)
    factories.JobFactory(queue=other, scheduled=True)
    address = f"{list_url('job')}run_now/?state={JobState.SCHEDULED.value}&queue={mail.pk}"

    asked = operator.post(address)
    assert "Run 3 jobs in queue mail now" in asked.content.decode()
    done = operator.post(address, {"confirmed": "1"}, follow=True)

    assert messages_of(done) == ["3 jobs made due."]
    assert [job.queue.name for job in Job.objects.filter(state=JobState.SCHEDULED)] == ["other"]
    assert done.redirect_chain == [(f"{list_url('job')}?state={JobState.SCHEDULED.value}&queue={mail.pk}", 302)]


def test_more_than_can_be_done_at_once_is_said_so_and_left_to_a_job(operator: Client):
    factories.JobTypeFactory(name="pgbroker.change_jobs")
    archive(2_001, state=JobState.DEAD, error_class="E")
    address = f"{list_url('deadletter')}redrive/"

    page = operator.post(address).content.decode()
    assert "Redrive more than 2,000 dead letters" in page
    assert "A job of the broker itself will do it" in page
    done = operator.post(address, {"confirmed": "1"}, follow=True)
    [message, warning] = messages_of(done)
    assert "no live worker serves its queue" in warning

    bulk = Job.objects.get()
    assert detail_url("job", bulk.pk) in message
    assert bulk.job_type.name == "pgbroker.change_jobs"


@pytest.mark.parametrize("query", ["", "?q=7"])
def test_a_list_without_filter_offers_nothing_for_all(operator: Client, query: str):
    job = factories.JobFactory()
    assert "All that match" not in operator.get(list_url("job") + query).content.decode()
    assert "All that match" in operator.get(f"{list_url('job')}?queue={job.queue_id}").content.decode()


@pytest.mark.parametrize("query", ["?queue=x", "?queue=99999", "?job_type=99999", "?state=x", "?queue=" + "9" * 30])
def test_a_mangled_filter_takes_no_job(operator: Client, query: str):
    factories.JobFactory(scheduled=True)
    operator.post(f"{list_url('job')}run_now/{query}", {"confirmed": "1"})
    assert Job.objects.get().state == JobState.SCHEDULED


def test_a_queue_is_paused_until_a_time_and_resumed(operator: Client):
    queue = factories.QueueFactory(name="mail")
    until = (timezone.now() + timedelta(hours=2)).strftime("%Y-%m-%dT%H:%M")
    past = operator.post(
        verb_url("queue", queue, "pause"), {"confirmed": "1", "reason": "x", "until": "2020-01-01T00:00"}
    )
    assert past.context["form"].errors == {"until": ["This time has passed."]}

    operator.post(verb_url("queue", queue, "pause"), {"confirmed": "1", "reason": "bank is down", "until": until})
    queue.refresh_from_db()
    assert (queue.paused_by, queue.pause_reason) == ("root", "bank is down")
    assert queue.resume_at.strftime("%Y-%m-%dT%H:%M") == until
    page = operator.post(verb_url("queue", queue, "resume"), follow=True)

    assert messages_of(page)[-1] == "Queue mail: resumed."
    assert not Queue.objects.get(pk=queue.pk).is_paused
    again = operator.post(verb_url("queue", queue, "resume"), follow=True)
    assert messages_of(again) == ["Queue mail is so already; nothing changed."]


def test_a_queues_ageing_is_changed_and_its_jobs_with_it(operator: Client):
    job = factories.JobFactory(queue=factories.QueueFactory(name="mail"), priority=5)
    asked = operator.post(verb_url("queue", job.queue, "set"))
    assert 'value="60"' in asked.content.decode()
    page = operator.post(verb_url("queue", job.queue, "set"), {"confirmed": "1", "ageing_seconds": "30"}, follow=True)
    assert messages_of(page)[0] == "Queue mail: changed. 1 job brought into the new order."


def test_orders_reach_a_worker(operator: Client):
    worker = factories.WorkerFactory(queues={"mail": 1, "reports": 1})
    operator.post(verb_url("worker", worker, "resize"), {"confirmed": "1", "concurrency": "4"})
    operator.post(verb_url("worker", worker, "pause_queue"), {"confirmed": "1", "queue": "mail"})
    forged = operator.post(verb_url("worker", worker, "pause_queue"), {"confirmed": "1", "queue": "elsewhere"})
    operator.post(verb_url("worker", worker, "drain"), {"confirmed": "1"})

    worker.refresh_from_db()
    assert (worker.ordered_concurrency, worker.paused_queues) == (4, ["mail"])
    assert worker.drain_requested_at is not None
    assert "queue" in forged.context["form"].errors
    page = operator.get(detail_url("worker", worker.pk)).content.decode()
    assert "/drain/" not in page
    assert "/stop/" in page


def test_an_order_to_a_worker_that_has_ended_is_an_error_in_words(operator: Client):
    worker = factories.WorkerFactory(stopped_at=timezone.now())
    page = operator.post(verb_url("worker", worker, "drain"), {"confirmed": "1"})
    assert page.status_code == 200
    assert "has ended" in page.context["form"].non_field_errors()[0]
    assert Worker.objects.get().drain_requested_at is None


@pytest.mark.urls("tests.admin.two_sites")
def test_another_site_has_buttons_of_its_own(client: Client):
    job = factories.JobFactory(scheduled=True)
    page_of_job = f"/operations/django_pgbroker/job/{job.pk}/change/"
    user = get_user_model().objects.create_user("customer")
    client.force_login(user)
    refused = client.post(f"/operations/django_pgbroker/job/{job.pk}/run_now/")
    assert refused.url.startswith("/operations/login/")

    client.force_login(get_user_model().objects.create_superuser("root"))
    page = client.get(page_of_job).content.decode()
    assert f'action="/operations/django_pgbroker/job/{job.pk}/run_now/"' in page
    asked = client.post(f"/operations/django_pgbroker/job/{job.pk}/cancel/").content.decode()
    assert 'href="/operations/"' in asked
    assert 'href="/admin/' not in asked
    done = client.post(
        f"/operations/django_pgbroker/job/{job.pk}/run_now/", headers={"referer": "https://evil.example"}
    )

    assert done.url == page_of_job
    assert Job.objects.get().state == JobState.PENDING


def test_who_has_to_log_in_first_comes_back_to_the_page_with_the_button(client: Client):
    job = factories.JobFactory()
    one = client.post(verb_url("job", job, "cancel"))
    many = client.post(f"{list_url('job')}cancel/?queue={job.queue_id}")
    get_user_model().objects.create_superuser("root", password="x")
    places = []
    for response in (one, many):
        back = client.post(response.url, {"username": "root", "password": "x"}, follow=True)
        assert back.status_code == 200
        places.append(back.request["PATH_INFO"])
        client.logout()
    assert places == [detail_url("job", job.pk), list_url("job")]
    assert many.url.endswith(f"%3Fqueue%3D{job.queue_id}")


def test_a_count_that_ended_early_promises_no_more_than_it_saw():
    chosen = JobFilter(queue="mail")
    assert describe_filter(chosen, Matches(5, is_exact=False), "job") == "at least 5 jobs in queue mail"
    assert describe_filter(chosen, Matches(0, is_exact=False), "job") == "the jobs in queue mail"
    assert remark_on_matches(Matches(0, is_exact=False), "job").startswith("None was found among the 200,000 jobs")
    assert describe_filter(chosen, Matches(2_001, is_exact=False), "job") == "more than 2,000 jobs in queue mail"
    assert describe_filter(chosen, Matches(1, is_exact=True), "job") == "1 job in queue mail"


class Inline(HTMLParser):
    """What a strict content security policy would block."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.blocked: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = dict(attrs)
        self.blocked += [f"{tag} {name}" for name in names if name.startswith("on") or name == "style"]
        if tag == "style" or (tag == "script" and "src" not in names):
            self.blocked.append(tag)


def test_no_page_needs_inline_code_or_styles(operator: Client):
    job = factories.JobFactory(scheduled=True)
    pages = [
        operator.get(f"{list_url('job')}?queue={job.queue_id}"),
        operator.get(list_url("queue")),
        operator.get(detail_url("job", job.pk)),
        operator.post(verb_url("job", job, "postpone")),
        operator.post(f"{list_url('job')}enqueue/"),
    ]
    for page in pages:
        # Django's own list without actions has a style, which it marks with the nonce of its policy
        own = page.content.decode().partition('id="content"')[2]
        assert own
        assert not Inline(own).blocked


def test_the_buttons_stay_the_same_however_often_they_are_drawn(operator: Client):
    address = detail_url("job", factories.JobFactory().pk)

    def buttons() -> list[str]:
        return re.findall(r"<button[^>]*>", operator.get(address).content.decode())

    first = buttons()
    for _ in range(3):
        assert buttons() == first
    assert 'class="pgb-button pgb-danger"' in " ".join(first)


def test_a_question_costs_few_queries_and_counts_nothing_but_what_is_bounded(operator: Client):
    archive(300, state=JobState.DEAD, error_class="E")
    rows = list(ArchivedJob.objects.all()[:100])
    for go in (
        lambda: act_on(operator, "deadletter", rows, "discard"),
        lambda: operator.post(f"{list_url('deadletter')}discard/"),
        lambda: operator.post(verb_url("deadletter", rows[0], "discard")),
    ):
        with CaptureQueriesContext(connection) as captured:
            assert go().status_code == 200
        assert len(captured) <= 10
        assert not [each["sql"] for each in captured if re.search(r"count\(\*\) as|offset", each["sql"], re.IGNORECASE)]


def test_acts_that_take_something_away_stand_last_and_look_so(operator: Client):
    page = operator.get(detail_url("job", factories.JobFactory(scheduled=True).pk)).content.decode()
    assert re.findall(r"<button [^>]*>([^<]*)</button>", page.partition('class="pgb-tools"')[2])[-1] == "Cancel"
    assert CANCEL.is_destructive


def test_every_button_of_an_object_has_an_address_of_its_own():
    assert len({address.url_name for address in ADDRESSES}) == len(ADDRESSES)


def test_the_checks_ask_no_database():
    class NoDatabase:
        def __call__(self, execute: Any, sql: str, *_: Any) -> Any:
            raise AssertionError(sql)

    with connection.execute_wrapper(NoDatabase()):
        call_command("check")
