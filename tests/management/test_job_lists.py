"""What ``pgbroker_jobs list`` and ``show`` print, page by page, whatever is stored."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_pgbroker.domain.states import JobState
from django_pgbroker.operations.pages import read_page
from tests import factories
from tests.management.commands import HOSTILE, audit, has_control_characters, jobs, make

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def empty(broker_database: None) -> None:
    """Every test counts from nothing."""


def test_live_jobs_come_newest_first_and_finished_ones_apart():
    first, second = make(JobState.PENDING), make(JobState.RUNNING)
    done, dead = make(JobState.COMPLETED), make(JobState.DEAD)

    assert [row[0] for row in jobs("list").rows] == [str(second.pk), str(first.pk)]
    assert [row[0] for row in jobs("list", "--finished").rows] == [str(dead.pk), str(done.pk)]
    assert [row[0] for row in jobs("list", "--state", "dead").rows] == [str(dead.pk)]
    assert [row[0] for row in jobs("list", "--state", "running").rows] == [str(second.pk)]
    assert [each["id"] for each in jobs("list", "--json").json["jobs"]] == [second.pk, first.pk]


def test_pages_lead_through_all_jobs_once():
    every = [make(JobState.PENDING).pk for _ in range(5)]

    seen, after = [], None
    for _ in range(3):
        page = jobs("list", "--limit", "2", "--json", *(["--after", str(after)] if after else [])).json
        seen += [each["id"] for each in page["jobs"]]
        after = page["next_after"]

    assert seen == every[::-1]
    assert after is None
    assert "--after" in jobs("list", "--limit", "2").error


def test_a_filter_without_an_index_looks_at_a_bounded_number_of_rows_and_says_how_to_go_on(monkeypatch):
    rare = make(JobState.PENDING, priority=7, queue=factories.QueueFactory(name="rare"))
    last = [make(JobState.PENDING) for _ in range(6)][-1]
    monkeypatch.setitem(read_page.__kwdefaults__, "window_rows", 4)

    page = jobs("list", "--queue", "rare")
    assert (page.status, page.rows) == (0, [])
    assert f"go on with --after {last.pk - 3}" in page.error
    assert [row[0] for row in jobs("list", "--queue", "rare", "--after", str(last.pk - 3)).rows] == [str(rare.pk)]


def test_no_list_counts():
    make(JobState.PENDING), make(JobState.DEAD)
    with CaptureQueriesContext(connection) as seen:
        for words in ([], ["--queue", "default"], ["--finished"], ["--state", "dead", "--error", "no such"]):
            assert len(jobs("list", *words).rows) == 1
    assert not [query["sql"] for query in seen.captured_queries if "count(" in query["sql"].lower()]


def test_filters_of_the_finished():
    wanted = make(JobState.DEAD, error_class="shop.Refused", error_message="100%s sure")
    make(JobState.DEAD)

    for words in (["--error-class", "shop.Refused"], ["--error", "100%s"], ["--error", "SURE"]):
        assert [row[0] for row in jobs("list", "--state", "dead", *words).rows] == [str(wanted.pk)]
    assert jobs("list", "--finished", "--finished-before", "1h").rows == []
    assert len(jobs("list", "--finished", "--finished-after", "1h").rows) == 2


def test_hostile_names_break_neither_lines_nor_terminals():
    for text in HOSTILE:
        kind = factories.JobTypeFactory(name=text)
        make(JobState.PENDING, job_type=kind, queue=factories.QueueFactory(name=text[:100]))
        make(JobState.DEAD, job_type=kind, error_message=text)

    for words, width in ((["list"], 10), (["list", "--finished"], 10)):
        piped, seen = jobs(*words), jobs(*words, terminal=True)
        assert {len(row) for row in piped.rows} == {width}
        assert len(piped.rows) == len(HOSTILE)
        assert len(seen.out.splitlines()) == len(HOSTILE) + 1
        assert not has_control_characters(piped.out + seen.out)
    assert [each["type"] for each in jobs("list", "--json").json["jobs"]] == HOSTILE[::-1]


def test_a_terminal_says_that_there_is_nothing():
    assert jobs("list", terminal=True).out == "No job that waits or runs matches.\n"
    assert jobs("list").out.split("\t")[0] == "id"


def test_a_live_job_with_all_that_is_known():
    job = make(JobState.RUNNING, is_tracked=True)
    factories.JobProgressFactory(job=job)
    factories.ExecutionFactory(failed=True, job_id=job.pk, worker=job.worker)
    audit(target={"jobs": [job.pk]}, action="job.run_now")
    audit(target={"jobs": [job.pk + 1]}, action="job.cancel")

    shown = jobs("show", str(job.pk), "--json").json
    assert (shown["state"], shown["worker"]) == ("running", job.worker.name)
    assert shown["arguments"] == {"order_id": 7}
    assert shown["progress"] == {"done": 420, "total": 1000, "stage": "load"}
    assert [each["outcome"] for each in shown["executions"]] == ["failed"]
    assert [each["action"] for each in shown["audit"]] == ["job.run_now"]

    text = jobs("show", str(job.pk), terminal=True).out
    for part in ('"order_id": 7', "420 of 1,000 load", "no such order", "Traceback", "job.run_now"):
        assert part in text


def test_a_dead_letter_with_its_error_and_steps():
    job = factories.ArchivedJobFactory(dead=True, result={"rows": 3})
    factories.JobStepFactory(job_id=job.pk, name="load")

    text = jobs("show", str(job.pk)).out
    for part in ("state\tdead", "no such order", "step load", '"rows": 7', '"rows": 3'):
        assert part in text


def test_nothing_stored_can_steer_the_terminal():
    text = "".join(HOSTILE)
    job = factories.ArchivedJobFactory(dead=True, error_message=text, reason=text, arguments={text: text})
    factories.ExecutionFactory(failed=True, job_id=job.pk, error_message=text, traceback=text)
    factories.JobStepFactory(job_id=job.pk, name=text[:200])
    audit(target={"jobs": [job.pk]}, reason=text)

    assert not has_control_characters(jobs("show", str(job.pk), terminal=True).out)
    assert jobs("show", str(job.pk), "--json").json["error"] == text
