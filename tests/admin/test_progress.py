"""How far a job is, and what it remembers, on the screens."""

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from django_pgbroker.admin.display import NOTHING
from tests import factories
from tests.admin.screens import address_of, list_url

pytestmark = pytest.mark.django_db


def read(browser: Client, url: str) -> str:
    """The text that a reader sees, and the values of the bars."""
    page = browser.get(url).content.decode()
    bars = re.findall(r'<progress max="100" value="([\d.]+)"', page)
    text = " ".join(re.sub(r"<[^>]*>", " ", page).split())
    return f"{text} bars {','.join(bars)}"


def test_a_running_job_shows_bar_percent_counts_stage_and_age(operator: Client):
    progress = factories.JobProgressFactory(done=1_234_567, total=2_000_000, stage="load rows")

    page = read(operator, address_of("job", progress.job))

    assert "bars 61.7" in page
    assert re.search(r"Progress 61 % Done 1,234,567 of 2,000,000 Stage load rows Told \d{4}-\S+ \S+ UTC \d s ago", page)


def test_without_a_total_there_is_no_bar_but_the_count(operator: Client):
    progress = factories.JobProgressFactory(done=12.5, total=None, stage=None)

    for url in (address_of("job", progress.job), list_url("job")):
        page = read(operator, url)
        assert "12.5" in page
        assert page.endswith("bars ")


def test_a_job_that_tells_nothing_has_no_progress_section(operator: Client):
    page = read(operator, address_of("job", factories.JobFactory(running=True)))

    assert "Progress" not in page
    assert "Steps that are done" not in page


def test_the_list_shows_percent_and_stage_beside_each_job(operator: Client):
    factories.JobProgressFactory(done=1, total=3, stage="read")
    factories.JobProgressFactory(done=999.9, total=1000, stage="send")
    factories.JobFactory()

    page = read(operator, list_url("job"))

    assert "33 % read" in page
    assert "99 % send" in page, "only what is done is at 100"
    assert page.endswith("bars 100.0,33.3")


def test_the_list_costs_as_many_queries_for_many_jobs_as_for_one(operator: Client):
    counts = []
    for more in (1, 30):
        factories.JobProgressFactory.create_batch(more)
        with CaptureQueriesContext(connection) as captured:
            read(operator, list_url("job"))
        counts.append(len(captured))
        assert not [query["sql"] for query in captured if "count(" in query["sql"].lower()]
    assert counts[0] == counts[1]


def test_a_job_shows_the_steps_that_are_done_and_its_cursor(operator: Client):
    job = factories.JobProgressFactory().job
    factories.JobStepFactory(job_id=job.pk, name="download", result={"file": "a.csv"})
    factories.JobStepFactory(job_id=job.pk, name="long", result="x" * 500)
    factories.JobStepFactory(job_id=job.pk, name="", result=[4711, "row"])
    factories.JobStepFactory(job_id=job.pk + 1, name="other job's")

    page = read(operator, address_of("job", job))

    assert "download 3 min ago {&quot;file&quot;: &quot;a.csv&quot;}" in page
    assert f"{'x' * 119}…" in page
    assert "x" * 121 not in page
    assert "Cursor Value [4711, &quot;row&quot;]" in page
    assert "other job" not in page


def test_many_steps_are_cut_and_the_page_says_so(operator: Client):
    job = factories.JobProgressFactory().job
    factories.JobStepFactory.create_batch(60, job_id=job.pk)

    with CaptureQueriesContext(connection) as captured:
        page = read(operator, address_of("job", job))

    assert page.count("3 min ago") == 50
    assert "The newest 50." in page
    assert len(captured) <= 11


@pytest.mark.parametrize(
    ("state", "progress", "shown"),
    [
        ({}, {"done": 10, "total": 10, "stage": "load"}, "Progress 100 % Done 10 of 10 Stage load"),
        ({}, {"done": 7, "total": None, "stage": None}, f"Progress Done 7 Stage {NOTHING}"),
        ({"dead": True}, {"done": 1.7e308, "total": int(1.75e308), "stage": "x"}, "Progress 97 % Done 1.7e+308 of"),
    ],
)
def test_a_finished_job_shows_its_last_progress(operator: Client, state, progress, shown):
    job = factories.ArchivedJobFactory(progress=progress, **state)

    assert shown in read(operator, address_of("archivedjob", job))


def test_a_dead_letter_shows_what_it_would_go_on_from(operator: Client):
    dead = factories.ArchivedJobFactory(dead=True)
    factories.JobStepFactory(job_id=dead.pk, name="download")

    assert "download 3 min ago" in read(operator, address_of("deadletter", dead))


def test_the_list_has_no_column_of_progress_where_no_job_tells_any(operator: Client):
    job = factories.JobFactory(running=True)
    assert "column-progress_bar" not in operator.get(list_url("job")).content.decode()
    factories.JobProgressFactory(job=job, done=1)
    assert "column-progress_bar" in operator.get(list_url("job")).content.decode()
