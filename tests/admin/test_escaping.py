"""No stored value is ever markup or a live link, on any page."""

from html.parser import HTMLParser
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.utils.html import escape

from django_pgbroker.models import Execution, Job, Worker
from tests import factories
from tests.admin.addresses import ADDRESSES
from tests.admin.screens import address_of, list_url

pytestmark = pytest.mark.django_db

HOSTILE = [
    "<img src=x onerror=alert(1)>",
    '"><svg/onload=alert(1)>',
    "</pre></textarea><script>alert(1)</script>",
    "javascript:alert(1)",
    "https://evil.example/now",
    "{{7*7}}{% now 'Y' %}",
    "a'b",
    "%s %(x)s",
]


#: Buttons that ask before they do anything.
QUESTIONS = {
    f"question of {each}"
    for each in ADDRESSES
    if each.verb.needs_reason or each.verb.name in {"queue.set", "worker.drain", "worker.resize", "worker.pause_queue"}
}


class Markup(HTMLParser):
    """Collects what a browser would act on."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.targets: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "wbr":  # stands behind the dots of names
            self.elements.append((tag, tuple(name for name, _ in attrs)))
        self.targets += [value or "" for name, value in attrs if name in {"href", "src", "action"}]


def make_hostile_rows(text: str) -> dict[str, Any]:
    queue = factories.QueueFactory(
        name=text, paused_at=factories.timezone.now(), paused_by=text, pause_reason=text, pending_count=1
    )
    names = {
        "queue": queue,
        "job_type": factories.JobTypeFactory(name=text),
        "tenant": factories.TenantFactory(name=text),
    }
    worker = factories.WorkerFactory(
        name=text, hostname=text, version=text, queues={text: 5}, stop_reason=text, job_type_ids=[names["job_type"].pk]
    )
    job = factories.JobFactory(running=True, worker=worker, **names)
    Job.objects.filter(pk=job.pk).update(is_tracked=True)
    factories.JobProgressFactory(job=job, stage=text)
    texts = {"created_by": text, "correlation_id": text}
    type(job.payload).objects.filter(pk=job.pk).update(arguments={text: [text]}, headers={text: text}, **texts)
    error = {"error_class": text, "error_message": text, "reason": text}
    dead = factories.ArchivedJobFactory(
        dead=True, arguments={text: text}, headers={text: text}, result={text: text}, **names, **error, **texts,
        progress={"done": 1, "total": 2, "stage": text},
    )  # fmt: skip
    for job_id in (job.pk, dead.pk):
        factories.JobStepFactory(job_id=job_id, name=text, result=text)
        factories.JobStepFactory(job_id=job_id, name="", result=text)
    execution = factories.ExecutionFactory(
        failed=True, worker=worker, job_id=dead.pk, **names, **(error | {"traceback": text})
    )
    factories.AuditEntryFactory(
        actor=text, source=text, action=text, reason=text, target={"jobs": [job.pk]}, before={text: text}, after=[text]
    )
    act = factories.AuditEntryFactory(
        actor=text, source=text, action=text, reason=text, target={"queue": text}, before={text: text}, after=[text]
    )
    return {
        "auditentry": act,
        "job": job,
        "archivedjob": dead,
        "deadletter": dead,
        "execution": execution,
        "queue": queue,
        "worker": worker,
    }


def read_all_pages(browser: Client, text: str) -> dict[str, str]:
    """Every page about rows that are full of ``text``; the rows are gone afterwards."""
    with transaction.atomic():
        rows = make_hostile_rows(text)
        urls = {f"list of {model}": list_url(model) for model in rows}
        urls |= {f"page of {model}": address_of(model, row) for model, row in rows.items()}
        urls["filtered list"] = f"{list_url('job')}?queue={rows['queue'].pk}"
        pages = {name: browser.get(url).content.decode() for name, url in urls.items()}
        asked = {f"question of {each}": each.of(rows[each.model]) for each in ADDRESSES if each.is_for_one}
        pages |= {name: browser.post(url).content.decode() for name, url in asked.items() if name in QUESTIONS}
        selected = {"action": "move", "index": "0", "_selected_action": [rows["job"].pk]}
        pages["question of an action"] = browser.post(list_url("job"), selected).content.decode()
        refused = {
            "action": "move",
            "index": "0",
            "_selected_action": [rows["job"].pk],
            "confirmed": "1",
            "queue": text,
        }
        pages["refused answer"] = browser.post(list_url("job"), refused).content.decode()
        chosen = f"{list_url('job')}cancel/?queue={rows['queue'].pk}"
        pages["message"] = browser.post(chosen, follow=True).content.decode()
        transaction.set_rollback(True)
    return pages


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_adds_no_element_no_attribute_and_no_link(operator: Client, text: str):
    harmless = {name: Markup(page) for name, page in read_all_pages(operator, "plain words").items()}

    for name, page in read_all_pages(operator, text).items():
        markup = Markup(page)
        assert markup.elements == harmless[name].elements, name
        elsewhere = [target for target in markup.targets if not target.startswith("?")]
        assert not [target for target in elsewhere if "evil" in target or target.startswith("javascript")], name
        assert escape(text) in page, name


def test_the_names_are_really_on_the_pages(operator: Client):
    """Otherwise the test above would pass on pages that show nothing."""
    rows = make_hostile_rows("<b>shop&co</b>")

    for model, row in rows.items():
        assert "&lt;b&gt;shop&amp;co&lt;/b&gt;" in operator.get(list_url(model)).content.decode(), model
        assert "&lt;b&gt;shop&amp;co&lt;/b&gt;" in operator.get(address_of(model, row)).content.decode(), model


def test_a_search_for_markup_is_answered_with_text(operator: Client):
    page = operator.get(list_url("job"), {"q": "<script>alert(1)</script>"}).content.decode()

    assert "<script>alert" not in page
    assert "Search takes the number of one job." in page


def test_control_characters_in_names_do_no_harm(operator: Client):
    worker = factories.WorkerFactory(name="\x1b[31m\u202egnp\u202c\x7f")

    assert operator.get(address_of("worker", worker)).status_code == 200
    assert Worker.objects.count() == 1
    assert not Job.objects.exists()
    assert not Execution.objects.exists()
