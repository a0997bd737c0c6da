"""Lists page by key: nothing twice, nothing missed, no count, the same number of queries whatever the size."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from django_pgbroker.admin.keyset import KeysetChangeList
from django_pgbroker.domain.states import JobState
from django_pgbroker.models import ArchivedJob, Execution, Job
from tests import factories
from tests.admin.screens import MODELS, list_url

pytestmark = pytest.mark.django_db

PER_PAGE = 100


def archive(count: int, **fields: Any) -> None:
    template = factories.ArchivedJobFactory.build(**fields)
    names = {
        "tenant": factories.TenantFactory(),
        "queue": fields.get("queue") or factories.QueueFactory(),
        "job_type": fields.get("job_type") or factories.JobTypeFactory(),
    }
    first = (ArchivedJob.objects.order_by("-pk").values_list("pk", flat=True).first() or 0) + 1
    values = {
        field.name: getattr(template, field.name)
        for field in ArchivedJob._meta.fields
        if field.name not in {"id", "run_group", *names}
    }
    ArchivedJob.objects.bulk_create(ArchivedJob(id=first + n, **values, **names) for n in range(count))


def ids_on(response: Any) -> list[int]:
    return [row.pk for row in response.context["cl"].result_list]


def follow(browser: Client, model: str, response: Any, direction: str) -> Any:
    return browser.get(list_url(model) + getattr(response.context["cl"], f"{direction}_query"))


def walk(browser: Client, model: str, query: str = "") -> list[int]:
    """All ids that the links to older rows lead to."""
    response = browser.get(list_url(model) + query)
    seen = ids_on(response)
    for _ in range(50):
        if not response.context["cl"].older_query:
            return seen
        response = follow(browser, model, response, "older")
        seen += ids_on(response)
    raise AssertionError("the links to older rows never end")


def test_the_links_lead_through_all_rows_once_and_newest_first(operator: Client):
    archive(2 * PER_PAGE + 30)

    seen = walk(operator, "archivedjob")

    assert seen == sorted(ArchivedJob.objects.values_list("pk", flat=True), reverse=True)


def test_rows_that_arrive_meanwhile_move_no_row_to_another_page(operator: Client):
    archive(3 * PER_PAGE)
    first = operator.get(list_url("archivedjob"))
    expected_second = [pk - PER_PAGE for pk in ids_on(first)]

    archive(250)
    second = follow(operator, "archivedjob", first, "older")

    assert ids_on(second) == expected_second


def test_going_back_shows_the_rows_that_were_there(operator: Client):
    archive(3 * PER_PAGE)
    first = operator.get(list_url("archivedjob"))
    second = follow(operator, "archivedjob", first, "older")
    third = follow(operator, "archivedjob", second, "older")

    back = follow(operator, "archivedjob", third, "newer")
    top = follow(operator, "archivedjob", back, "newer")

    assert ids_on(back) == ids_on(second)
    assert ids_on(top) == ids_on(first)
    assert top.context["cl"].newer_query is None
    assert third.context["cl"].older_query is None
    assert ids_on(follow(operator, "archivedjob", third, "newest")) == ids_on(first)


def test_executions_of_one_job_are_split_between_pages_without_loss(operator: Client):
    worker, queue, job_type = factories.WorkerFactory(), factories.QueueFactory(), factories.JobTypeFactory()
    for n in range(130):
        factories.ExecutionFactory(
            job_id=7 + n // 120, lease_token=n + 1, worker=worker, queue=queue, job_type=job_type
        )

    seen = walk(operator, "execution")

    assert seen == list(range(130, 0, -1))
    first = operator.get(list_url("execution"))
    second = follow(operator, "execution", first, "older")
    assert ids_on(follow(operator, "execution", second, "newer")) == ids_on(first)


@pytest.mark.parametrize(
    "query", ["?before=x", "?after=-1", "?before=1-2", "?before=", "?before=²", "?queue=x", "?state=-1"]
)
def test_a_mangled_address_leads_back_to_the_list(operator: Client, query: str):
    archive(3)

    response = operator.get(list_url("archivedjob") + query, follow=True)

    assert response.redirect_chain == [(list_url("archivedjob") + "?e=1", 302)]
    assert len(ids_on(response)) == 3


@pytest.mark.parametrize("query", ["?p=2", "?all=", "?o=2.-1", "?_facets=True", f"?before={10**30}"])
def test_parameters_of_ordinary_lists_change_nothing(operator: Client, query: str):
    archive(3)

    assert ids_on(operator.get(list_url("archivedjob") + query)) == ids_on(operator.get(list_url("archivedjob")))


@pytest.mark.parametrize(
    "lookup", ["error_message__contains=x", "id__gt=1", "queue__name=x", "job_type__name__regex=x"]
)
def test_filters_that_no_screen_offers_are_refused(operator: Client, lookup: str):
    assert operator.get(f"{list_url('archivedjob')}?{lookup}").status_code == 400


def test_a_new_filter_starts_at_the_newest_rows(operator: Client):
    archive(2 * PER_PAGE)
    first = operator.get(list_url("archivedjob"))
    page = follow(operator, "archivedjob", first, "older").content.decode()

    filters = re.findall(r'href="(\?[^"]*)"', page.partition('id="changelist-filter"')[2].partition("</search>")[0])

    assert any("state=" in link for link in filters)
    assert not [link for link in filters if "before" in link]
    assert 'name="before"' not in page


def test_filters_find_their_rows(operator: Client):
    mail = factories.QueueFactory(name="mail")
    archive(5)
    archive(3, queue=mail)
    archive(2, state=JobState.DEAD)

    assert len(walk(operator, "archivedjob", f"?queue={mail.pk}")) == 3
    assert len(walk(operator, "archivedjob", f"?state={JobState.DEAD.value}")) == 2
    assert len(walk(operator, "deadletter")) == 2
    assert walk(operator, "archivedjob", f"?queue={mail.pk}&state={JobState.DEAD.value}") == []


def test_a_rare_value_is_found_behind_the_window_of_rows_looked_at(operator: Client, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(KeysetChangeList, "window_rows", 50)
    mail = factories.QueueFactory(name="mail")
    archive(1, queue=mail)
    archive(120)
    archive(2, queue=mail)
    rare = list(ArchivedJob.objects.filter(queue=mail).order_by("-pk").values_list("pk", flat=True))

    first = operator.get(f"{list_url('archivedjob')}?queue={mail.pk}")
    second = follow(operator, "archivedjob", first, "older")

    assert ids_on(first) == rare[:2]
    assert ids_on(second) == []
    assert "older ones may match" in second.content.decode()
    assert walk(operator, "archivedjob", f"?queue={mail.pk}") == rare
    last = follow(operator, "archivedjob", second, "older")
    assert ids_on(last) == rare[2:]
    assert last.context["cl"].older_query is None
    back = last
    for _ in range(3):
        back = follow(operator, "archivedjob", back, "newer")
    assert ids_on(back) == rare[:2]
    assert back.context["cl"].newer_query is None


def test_a_window_on_executions_splits_no_job(operator: Client, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(KeysetChangeList, "window_rows", 5)
    worker, queue, job_type = factories.WorkerFactory(), factories.QueueFactory(), factories.JobTypeFactory()
    for n in range(30):
        factories.ExecutionFactory(job_id=7 + n // 4, lease_token=n + 1, worker=worker, queue=queue, job_type=job_type)

    assert walk(operator, "execution", f"?queue={queue.pk}") == list(range(30, 0, -1))


def test_search_finds_one_job_by_its_number(operator: Client):
    archive(5)
    wanted = ids_on(operator.get(list_url("archivedjob")))[2]

    assert ids_on(operator.get(list_url("archivedjob"), {"q": f" #{wanted} "})) == [wanted]
    assert ids_on(operator.get(list_url("archivedjob"), {"q": "99999999"})) == []
    assert ids_on(operator.get(list_url("archivedjob"), {"q": "9" * 40})) == []
    assert operator.get(list_url("archivedjob"), {"q": "x\x00"}).status_code == 200


def test_search_uses_the_key_of_the_table(operator: Client):
    archive(5)

    with CaptureQueriesContext(
        connection,
    ) as captured:
        operator.get(list_url("archivedjob"), {"q": "3"})

    (search,) = [query["sql"] for query in captured if '"archived_job"."id" = 3' in query["sql"]]
    with connection.cursor() as cursor:
        cursor.execute("set local enable_seqscan = off")
        cursor.execute(f"explain {search}")
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert re.search(r"Index Cond: \(\(?id = 3", plan), plan


FILL: dict[str, Callable[[int], Any]] = {
    "job": factories.JobFactory.create_batch,
    "archivedjob": archive,
    "deadletter": lambda count: archive(count, state=JobState.DEAD, error_class="E"),
    "execution": lambda count: factories.ExecutionFactory.create_batch(count, failed=True),
    "queue": lambda count: [factories.QueueFactory(name=f"queue {count} {n}") for n in range(count)],
    "worker": factories.WorkerFactory.create_batch,
    "auditentry": factories.AuditEntryFactory.create_batch,
}


BY_QUEUE = [(model, "queue") for model in ("job", "archivedjob", "deadletter", "execution")]


@pytest.mark.parametrize(
    ("model", "parameter"),
    [(model, "") for model in MODELS] + BY_QUEUE + [("worker", "stopped"), ("auditentry", "actor")],
)
def test_a_list_of_500_costs_as_many_queries_as_one_of_5_and_counts_nothing(
    operator: Client, model: str, parameter: str
):
    values = {"": "", "queue": f"?queue={factories.QueueFactory().pk}", "stopped": "?stopped=0", "actor": "?actor=ada"}
    query = values[parameter]
    FILL[model](5)
    operator.get(list_url(model) + query)
    with CaptureQueriesContext(connection) as with_5:
        few = operator.get(list_url(model) + query)
    FILL[model](495)
    with CaptureQueriesContext(connection) as with_500:
        many = operator.get(list_url(model) + query)

    assert len(few.context["cl"].result_list) >= 5
    assert len(many.context["cl"].result_list) >= PER_PAGE
    assert len(with_500) == len(with_5)
    assert len(with_500) <= 9
    for query_text in (captured["sql"].lower() for captured in [*with_5, *with_500]):
        assert "count(" not in query_text
        assert " offset " not in query_text


def test_lists_do_not_read_what_they_do_not_show(operator: Client):
    archive(2, state=JobState.DEAD)
    factories.ExecutionFactory(failed=True)

    with CaptureQueriesContext(connection) as captured:
        operator.get(list_url("archivedjob"))
        operator.get(list_url("execution"))

    text = " ".join(query["sql"] for query in captured)
    assert '"arguments"' not in text
    assert '"traceback"' not in text
    assert '"finished_at"' in text


def test_empty_screens_say_what_emptiness_means(operator: Client):
    for model, words in {"deadletter": "No dead letters", "queue": "No queue yet", "worker": "pgbroker_worker"}.items():
        assert words in operator.get(list_url(model)).content.decode()


def test_live_rows_are_listed_by_their_own_key(operator: Client):
    factories.JobFactory.create_batch(3)
    factories.JobFactory(running=True)

    assert walk(operator, "job") == sorted(Job.objects.values_list("pk", flat=True), reverse=True)
    assert len(walk(operator, "job", f"?state={JobState.RUNNING.value}")) == 1
    assert Execution.objects.count() == 0


def test_the_audit_log_is_searched_by_the_job_that_something_was_done_to(operator: Client):
    factories.AuditEntryFactory.create_batch(2, target={"jobs": [5]})
    wanted = factories.AuditEntryFactory(target={"jobs": [1, 7, 9], "filter": {"queue": "mail"}})

    assert ids_on(operator.get(list_url("auditentry"), {"q": "#7"})) == [wanted.pk]
    assert ids_on(operator.get(list_url("auditentry"), {"q": "70"})) == []
    assert ids_on(operator.get(list_url("auditentry"), {"actor": "ada", "action": "job.set_priority"})) != []
    assert ids_on(operator.get(list_url("auditentry"), {"actor": "nobody"})) == []
    assert operator.get(list_url("auditentry"), {"actor": "\x00"}).status_code == 302
