"""Enqueue, clone and edit: a form made of the handler's signature, with its errors at the fields."""

import re
from collections.abc import Callable
from typing import Any, Literal

import pytest
from django.test import Client
from django.utils.html import escape

from django_pgbroker import job
from django_pgbroker.models import ArchivedJob, AuditEntry, Job, JobPayload
from django_pgbroker.registry import registry
from tests import factories
from tests.admin.screens import detail_url, list_url

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("receipts")]

ENQUEUE = f"{list_url('job')}enqueue/"


def enqueue(browser: Client, **values: Any) -> Any:
    sent = {"job_type": "shop.send_receipt", "confirmed": "1", "argument.order_id": "7", **values}
    return browser.post(ENQUEUE, sent)


def test_the_first_question_is_the_job_type_and_none_of_the_brokers_own(operator: Client):
    choices = operator.post(ENQUEUE).context["form"].fields["job_type"].choices
    assert ("shop.send_receipt", "shop.send_receipt") in choices
    assert not [name for name, _ in choices if name.startswith("pgbroker.")]
    forged = operator.post(ENQUEUE, {"job_type": "pgbroker.change_jobs", "confirmed": "1"})
    assert "job_type" in forged.context["form"].errors
    assert not Job.objects.exists()


def test_the_second_question_has_a_field_for_each_argument_and_option(operator: Client):
    form = operator.post(ENQUEUE, {"job_type": "shop.send_receipt"}).context["form"]
    assert list(form.fields) == [
        "argument.order_id", "argument.note", "queue", "priority", "delay", "run_at", "tenant", "reason",
    ]  # fmt: skip
    assert not Job.objects.exists()


def test_a_job_by_hand_is_stored_in_the_name_of_the_user(operator: Client):
    factories.QueueFactory(name="mail")
    response = enqueue(operator, queue="mail", priority="5", delay="60", reason="lost order")

    assert response.status_code == 302, response.context["form"].errors
    stored = Job.objects.select_related("queue").get()
    assert (stored.queue.name, stored.priority) == ("mail", 5)
    payload = JobPayload.objects.get()
    assert (payload.arguments, payload.created_by) == ({"order_id": 7}, "root")
    assert AuditEntry.objects.get().reason == "lost order"


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("argument.order_id", "seven", "Is no whole number"),
        ("argument.order_id", "", "required"),
        ("argument.order_id", "9" * 5000, "whole number"),
        ("queue", "nowhere", "is not one of the available choices"),
        ("priority", "101", "from -100 to 100"),
        ("priority", "urgently", "from -100 to 100"),
        ("priority", "9" * 4_400, "from -100 to 100"),
        ("delay", "1e12", "100 years"),
        ("tenant", "nobody", "is not one of the available choices"),
    ],
)
def test_an_error_stands_at_its_field_and_keeps_what_was_given(operator: Client, field: str, value: str, words: str):
    form = enqueue(operator, **{"argument.note": "keep me", field: value}).context["form"]
    assert words in " ".join(form.errors[field])
    assert form["argument.note"].value() == "keep me"
    assert not Job.objects.exists()


def test_an_error_of_no_field_stands_above_them(operator: Client):
    form = enqueue(operator, delay="5", run_at="2030-01-01T00:00").context["form"]
    assert "not both" in form.non_field_errors()[0]


def make_dead(**arguments: Any) -> Any:
    return factories.ArchivedJobFactory(dead=True, arguments=arguments)


def test_editing_begins_with_what_is_stored_and_loses_nothing(operator: Client):
    dead = make_dead(order_id=7, note="two\nlines")
    address = f"{list_url('deadletter')}{dead.pk}/edit/"

    form = operator.post(address).context["form"]
    sent = {name: form[name].value() or "" for name in form.fields}
    assert sent["argument.order_id"] == "7"
    operator.post(address, sent | {"argument.order_id": "8", "confirmed": "1"})

    assert ArchivedJob.objects.get().arguments == {"order_id": 8, "note": "two\nlines"}
    assert AuditEntry.objects.get().action == "job.edit"


def test_arguments_that_the_handler_no_longer_takes_are_shown_and_refused_by_name(operator: Client):
    dead = make_dead(order_id=7, gone=True)
    address = f"{list_url('deadletter')}{dead.pk}/edit/"
    form = operator.post(address).context["form"]
    sent = {name: form[name].value() or "" for name in form.fields} | {"confirmed": "1"}
    assert '"gone": true' in sent["argument.other-arguments"]
    assert "argument 'gone'" in operator.post(address, sent).context["form"].non_field_errors()[0]
    operator.post(address, sent | {"argument.other-arguments": ""})
    assert ArchivedJob.objects.get().arguments == {"order_id": 7}


def test_a_clone_is_a_new_job_with_changed_arguments(operator: Client):
    completed = factories.ArchivedJobFactory()
    address = f"{list_url('archivedjob')}{completed.pk}/clone/"

    response = operator.post(address, {"confirmed": "1", "argument.order_id": "8", "priority": "3"}, follow=True)

    job = Job.objects.get()
    assert (job.priority, JobPayload.objects.get().arguments) == (3, {"order_id": 8})
    assert detail_url("job", job.pk) in response.content.decode()
    assert ArchivedJob.objects.get().arguments == {"order_id": 7}


def test_a_job_whose_type_is_unknown_here_is_left_as_it_is(operator: Client):
    dead = factories.ArchivedJobFactory(dead=True, job_type=factories.JobTypeFactory(name="shop.removed"))
    page = operator.post(f"{list_url('deadletter')}{dead.pk}/edit/", follow=True)
    assert "no job type is registered as" in str([str(message) for message in page.context["messages"]])


def test_the_arguments_of_the_brokers_own_jobs_are_nobodys_to_write(operator: Client):
    own = factories.JobFactory(job_type=factories.JobTypeFactory(name="pgbroker.change_jobs"))
    before = JobPayload.objects.values().get()
    for verb in ("edit", "clone"):
        page = operator.post(f"{list_url('job')}{own.pk}/{verb}/", {"confirmed": "1"}, follow=True)
        assert "job type of the broker itself" in page.content.decode()
    assert JobPayload.objects.values().get() == before
    assert Job.objects.count() == 1


@pytest.mark.parametrize("text", ["<img src=x onerror=alert(1)>", '"><svg/onload=alert(1)>', "{{7*7}}", "</textarea>"])
def test_hostile_arguments_stay_text_in_the_fields(operator: Client, text: str):
    dead = make_dead(order_id=7, note=text, **{text: [text]})
    page = operator.post(f"{list_url('deadletter')}{dead.pk}/clone/").content.decode()
    assert escape(text) in page
    assert page.count("<textarea") == page.count("</textarea>") == 1
    assert "<svg/" not in page
    assert "<img src=x" not in page


def refuse_mail(user: Any, verb: str, *, queue: str | None, tenant: str | None) -> bool:
    return queue != "mail"


def test_the_hook_keeps_people_out_of_a_queue(staff_with: Callable[..., Client], settings: Any):
    settings.PGBROKER = {"PERMISSION_HOOK": f"{__name__}.refuse_mail"}
    browser = staff_with("view_job", "enqueue_job", "cancel_job")
    mail = factories.QueueFactory(name="mail")
    assert enqueue(browser, queue="mail").status_code == 403
    job = factories.JobFactory(queue=mail)
    assert f"{job.pk}/cancel/" not in browser.get(detail_url("job", job.pk)).content.decode()
    sent = {"confirmed": "1", "reason": "x"}
    assert browser.post(f"{list_url('job')}{job.pk}/cancel/", sent).status_code == 403
    assert Job.objects.count() == 1


def test_queue_and_tenant_are_offered_from_what_exists_and_what_is_declared(operator: Client, settings: Any):
    settings.PGBROKER = {"QUEUES": {"declared": {}, "default": {}}}
    factories.QueueFactory(name="mail")
    fields = operator.post(ENQUEUE, {"job_type": "shop.send_receipt"}).context["form"].fields
    assert [value for value, _ in fields["queue"].choices] == ["", "declared", "default", "mail"]
    assert ("", "the default one") in fields["tenant"].choices


def test_arguments_and_options_stand_under_two_headings(operator: Client):
    page = operator.post(ENQUEUE, {"job_type": "shop.send_receipt"}).content.decode()
    assert re.findall("<legend>(.*)</legend>", page) == ["Arguments", "Options"]


def test_an_edit_of_arguments_that_somebody_changed_meanwhile_is_refused(operator: Client):
    dead = make_dead(order_id=7)
    address = f"{list_url('deadletter')}{dead.pk}/edit/"
    asked = operator.post(address)
    sent = dict(asked.context["hidden"]) | {"argument.order_id": "8", "confirmed": "1"}
    ArchivedJob.objects.update(arguments={"order_id": 9})

    refused = operator.post(address, sent)

    assert "Somebody changed the arguments meanwhile" in refused.content.decode()
    assert refused.context["form"]["argument.order_id"].value() == "9"
    assert ArchivedJob.objects.get().arguments == {"order_id": 9}
    operator.post(address, sent | dict(refused.context["hidden"]))
    assert ArchivedJob.objects.get().arguments == {"order_id": 8}


def test_a_required_choice_must_be_made(operator: Client):
    @job("shop.paint")
    def paint(colour: Literal["red", "blue"]) -> None: ...

    try:
        form = operator.post(ENQUEUE, {"job_type": "shop.paint"}).context["form"]
        empty = operator.post(ENQUEUE, {"job_type": "shop.paint", "confirmed": "1"}).context["form"]
    finally:
        registry.forget("shop.paint")
    assert form.fields["argument.colour"].choices[0] == ("", "choose…")
    assert "argument.colour" in empty.errors
