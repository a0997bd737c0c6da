"""What a verb in the admin must never do: reach rows of other lists or all rows by accident, act unasked."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from django_pgbroker import job
from django_pgbroker.domain.states import JobState
from django_pgbroker.models import ArchivedJob, AuditEntry, Job, JobPayload
from django_pgbroker.registry import registry
from tests import factories
from tests.admin.screens import list_url
from tests.admin.test_verb_pages import act_on, messages_of, verb_url

pytestmark = pytest.mark.django_db

ENQUEUE = f"{list_url('job')}enqueue/"


@pytest.fixture
def sweeps() -> Iterator[None]:
    """A job type without any required argument."""

    @job("shop.sweep")
    def sweep(days: int = 30, dry: bool = True, note: str | None = None, words: tuple[str, ...] = ("a",)) -> None: ...

    yield
    registry.forget("shop.sweep")


@pytest.mark.usefixtures("sweeps")
def test_to_choose_a_job_type_enqueues_nothing_and_opens_a_clean_form(operator: Client):
    factories.QueueFactory(name="default")
    first = operator.post(ENQUEUE).content.decode()
    assert ">Go on</button>" in first
    assert 'name="confirmed"' not in first

    page = operator.post(ENQUEUE, {"job_type": "shop.sweep"})

    form = page.context["form"]
    assert not form.is_bound
    assert 'name="confirmed"' in page.content.decode()
    shown = {name.partition(".")[2]: form[name].value() for name in form.fields if name.startswith("argument.")}
    assert shown == {"days": "30", "dry": "true", "note": None, "words": None}
    assert not Job.objects.exists()
    sent = {name: form[name].value() or "" for name in form.fields} | {"job_type": "shop.sweep", "confirmed": "1"}
    done = operator.post(ENQUEUE, sent)
    assert done.status_code == 302, done.context["form"].errors
    assert JobPayload.objects.get().arguments == {"days": 30, "dry": True}


def test_an_action_reaches_no_row_of_another_list(staff_with: Callable[..., Client]):
    live = factories.JobFactory(scheduled=True)
    dead = factories.ArchivedJobFactory(dead=True)
    browser = staff_with("view_deadletter", "retry_job")

    alone = act_on(browser, "deadletter", [live], "retry", confirmed="1")
    both = act_on(browser, "deadletter", [live, dead], "retry", confirmed="1")

    gone = "1 dead letter is not on this list any more, and left alone."
    assert messages_of(alone) == [gone]
    assert gone in messages_of(both)
    assert Job.objects.get(pk=live.pk).state == JobState.SCHEDULED
    assert [entry.target["jobs"] for entry in AuditEntry.objects.all()] == [[dead.pk]]


def test_a_number_beyond_all_rows_is_an_answer_in_words(operator: Client):
    page = operator.get(f"{list_url('job')}{'9' * 4_500}/change/", follow=True)
    assert page.status_code == 200
    factories.JobFactory()
    assert operator.get(f"{list_url('job')}{'9' * 30}/change/", follow=True).status_code == 200


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("", "choose a filter first"),
        ("?queue=", "choose a filter first"),
        ("?q=27", "not of a search"),
        ("?state=2&foo=1", "no filter 'foo'"),
        ("?queue=x", "The filter by queue is no number"),
        ("?queue=999", "There is no queue with the number 999"),
    ],
)
def test_all_that_match_is_refused_where_no_filter_says_what_matches(operator: Client, query: str, words: str):
    factories.JobFactory()
    for sent in ({}, {"confirmed": "1", "reason": "x"}):
        page = operator.post(f"{list_url('job')}cancel/{query}", sent, follow=True)
        assert page.redirect_chain
        assert words in messages_of(page)[0]
    assert Job.objects.exists()
    assert not ArchivedJob.objects.exists()


def test_nothing_is_asked_where_nothing_matches(operator: Client):
    queue = factories.QueueFactory(name="mail")
    page = operator.post(f"{list_url('job')}cancel/?queue={queue.pk}", follow=True)
    assert messages_of(page) == ["No job matches. Nothing was done."]
    assert page.redirect_chain == [(f"{list_url('job')}?queue={queue.pk}", 302)]


def test_the_button_that_confirms_says_what_it_does(operator: Client):
    jobs = factories.JobFactory.create_batch(2, queue=factories.QueueFactory(name="mail"))

    def answer(page: Any) -> str:
        return str(page.context["answer"])

    assert answer(act_on(operator, "job", jobs, "cancel")) == "Cancel 2 jobs"
    assert answer(operator.post(verb_url("job", jobs[0], "cancel"))) == f"Cancel job {jobs[0].pk}"
    assert answer(operator.post(verb_url("queue", jobs[0].queue, "purge"))) == "Purge mail"
    long = factories.QueueFactory(name="q" * 100)
    assert answer(operator.post(verb_url("queue", long, "purge"))) == "Purge"


def test_a_purge_says_how_many_were_pending_and_when(operator: Client):
    queue = factories.QueueFactory(name="mail")
    unknown = operator.post(verb_url("queue", queue, "purge")).content.decode()
    assert "How many are pending is not known" in unknown
    queue.pending_count, queue.sampled_at = 1_234, timezone.now()
    queue.save()
    assert ": 1,234." in operator.post(verb_url("queue", queue, "purge")).content.decode()


def test_a_time_that_has_passed_is_refused_at_its_field(operator: Client):
    waiting = factories.JobFactory()
    page = operator.post(verb_url("job", waiting, "postpone"), {"confirmed": "1", "run_at": "2020-01-01T00:00"})
    assert page.context["form"].errors == {"run_at": ["This time has passed."]}


def test_a_retry_of_all_that_match_counts_only_what_was_tried(operator: Client):
    mail = factories.QueueFactory(name="mail")
    factories.JobFactory(queue=mail, scheduled=True)
    factories.JobFactory(queue=mail, scheduled=True, attempt=1)
    asked = operator.post(f"{list_url('job')}retry/?queue={mail.pk}")
    assert asked.context["title"] == "Retry 1 job in queue mail now"


def test_a_drain_warns_where_a_stop_alarms_and_both_stand_apart(operator: Client):
    worker = factories.WorkerFactory()
    page = operator.get(f"{list_url('worker')}{worker.pk}/change/").content.decode()
    tones = dict(re.findall(r'class="pgb-button pgb-(\w+)"[^>]*>(\w+)<', page))
    assert tones == {"caution": "Drain", "danger": "Stop"}
    assert page.count('<li class="pgb-apart">') == 2
