"""An operator at work: verbs by clicking, in a real browser under a strict policy, and what the rows say then."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from django_pgbroker import job
from django_pgbroker.domain.states import JobState
from django_pgbroker.models import ArchivedJob, AuditEntry, Job, JobPayload, Queue
from django_pgbroker.registry import registry
from tests import factories

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

HOSTILE = '"><svg/onload=alert(1)><img src=x onerror=alert(1)>'


def press(page: Page, label: str) -> None:
    page.locator(".pgb-tools").get_by_role("button", name=label, exact=True).click()


def confirm(page: Page, label: str) -> None:
    page.locator(".pgb-answer").get_by_role("button", name=label, exact=True).click()


def expect_message(page: Page, words: str) -> None:
    expect(page.locator(".messagelist")).to_contain_text(words)


def test_a_queue_is_paused_with_a_reason_and_resumed(page: Page):
    queue = factories.QueueFactory(name="mail")
    page.goto("queue/")
    page.get_by_role("link", name="mail").click()
    press(page, "Pause")
    page.get_by_label("Reason").fill("the bank is down")
    confirm(page, "Pause mail")
    expect_message(page, "Queue mail: paused.")

    queue.refresh_from_db()
    assert (queue.paused_by, queue.pause_reason) == ("root", "the bank is down")
    press(page, "Resume")
    expect_message(page, "Queue mail: resumed.")
    assert not Queue.objects.get(pk=queue.pk).is_paused
    assert [entry.action for entry in AuditEntry.objects.order_by("id")] == ["queue.pause", "queue.resume"]


def test_dead_letters_are_retried_and_redriven(page: Page):
    one, two = factories.ArchivedJobFactory.create_batch(2, dead=True)
    page.goto(f"deadletter/{one.pk}/change/")
    press(page, "Retry now")
    expect_message(page, f"Job {one.pk} sent back to be tried again.")
    page.get_by_role("link", name=str(two.pk)).click()
    press(page, "Redrive")
    page.get_by_label("One more attempt only").check()
    confirm(page, f"Redrive job {two.pk}")
    expect_message(page, f"Job {two.pk} redriven.")

    assert not ArchivedJob.objects.exists()
    jobs = {each.pk: each for each in Job.objects.all()}
    assert {each.state for each in jobs.values()} == {JobState.PENDING}
    assert jobs[two.pk].max_attempts - jobs[two.pk].attempt == 1


def test_a_cancel_needs_its_reason(page: Page):
    waiting = factories.JobFactory()
    page.goto(f"job/{waiting.pk}/change/")
    press(page, "Cancel")
    confirm(page, f"Cancel job {waiting.pk}")
    expect(page.get_by_role("alert")).to_have_text("This field is required.")
    assert Job.objects.exists()
    page.get_by_label("Reason").fill("ordered twice")
    confirm(page, f"Cancel job {waiting.pk}")
    expect_message(page, f"Job {waiting.pk} cancelled.")

    assert ArchivedJob.objects.get().reason == "cancelled by root: ordered twice"


def test_going_back_from_a_question_does_nothing(page: Page):
    waiting = factories.JobFactory()
    page.goto(f"job/{waiting.pk}/change/")
    press(page, "Cancel")
    page.get_by_role("link", name="No, go back").click()
    expect(page.locator(".pgb-tools")).to_be_visible()
    assert Job.objects.exists()
    assert not AuditEntry.objects.exists()


def test_a_selection_is_discarded(page: Page):
    dead = factories.ArchivedJobFactory.create_batch(3, dead=True)
    page.goto("deadletter/")
    for each in dead[:2]:
        page.locator(f"input[name=_selected_action][value='{each.pk}']").check()
    page.locator("select[name=action]").select_option("discard")
    page.locator("button[name=index]").click()
    expect(page.locator("#content h1")).to_have_text("Discard 2 dead letters in queue default")
    page.get_by_label("Reason").fill("obsolete")
    confirm(page, "Discard 2 dead letters")
    expect_message(page, "2 jobs discarded.")

    assert [each.pk for each in ArchivedJob.objects.filter(state=JobState.DEAD)] == [dead[2].pk]


def test_all_that_match_a_filter_are_moved(page: Page):
    factories.QueueFactory(name="slow")
    mail = factories.QueueFactory(name="mail")
    factories.JobFactory.create_batch(3, queue=mail)
    factories.JobFactory(queue=factories.QueueFactory(name="other"))
    page.goto(f"job/?queue={mail.pk}")
    page.get_by_text("All that match").click()
    press(page, "Move to a queue")
    expect(page.locator("#content h1")).to_have_text("Move 3 jobs in queue mail to another queue")
    page.get_by_label("Queue").select_option("slow")
    confirm(page, "Move 3 jobs to another queue")
    expect_message(page, "3 jobs moved.")

    assert Job.objects.filter(queue__name="slow").count() == 3


@pytest.fixture
def receipts() -> Any:
    @job("shop.print_receipt")
    def print_receipt(order_id: int, express: bool, copies: list[int], note: str | None = None) -> None: ...

    yield
    registry.forget("shop.print_receipt")


@pytest.mark.usefixtures("receipts")
def test_a_job_is_enqueued_by_a_form_that_names_its_mistakes(page: Page):
    page.goto("job/")
    press(page, "Enqueue a job")
    page.get_by_label("Job type").select_option("shop.print_receipt")
    confirm(page, "Go on")
    page.get_by_label("order_id").fill("7")
    page.get_by_label("express").check()
    page.get_by_label("copies").fill("one")
    confirm(page, "Enqueue")
    expect(page.get_by_role("alert")).to_contain_text("Is no JSON")
    page.get_by_label("copies").fill("[1, 2]")
    page.get_by_label("Priority").fill("5")
    confirm(page, "Enqueue")
    expect_message(page, "enqueued")

    stored = Job.objects.select_related("payload").get()
    assert stored.priority == 5
    assert JobPayload.objects.get().arguments == {"order_id": 7, "express": True, "copies": [1, 2]}


@pytest.mark.usefixtures("receipts")
def test_text_that_looks_like_code_stays_text(page: Page):
    dead = factories.ArchivedJobFactory(
        dead=True, job_type=factories.JobTypeFactory(name="shop.print_receipt"), error_message=HOSTILE,
        arguments={"order_id": 7, "express": True, "copies": [], "note": HOSTILE},
    )  # fmt: skip
    page.goto(f"deadletter/{dead.pk}/change/")
    press(page, "Discard")
    page.get_by_label("Reason").fill(HOSTILE)
    confirm(page, f"Discard job {dead.pk}")
    page.goto(f"archivedjob/{dead.pk}/change/")
    expect(page.locator("#content-main")).to_contain_text(HOSTILE)
    press(page, "Clone")
    expect(page.get_by_label("note")).to_have_value(HOSTILE)
    page.goto("auditentry/")
    expect(page.locator("#result_list")).to_contain_text(HOSTILE)
