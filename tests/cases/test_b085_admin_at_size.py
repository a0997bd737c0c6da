"""B085: the lists of the admin cost the same however long the history is, in queries and in rows that they touch."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from django_pgbroker.admin.keyset import WINDOW_ROWS, KeysetChangeList
from django_pgbroker.runtime.connections import open_gateway
from tests.admin.screens import detail_url, list_url
from tests.fixtures.database import empty_broker_tables
from tests.maintenance.rows import Rows
from tests.plans.years import Years
from tests.store.scene import PATIENT

pytestmark = pytest.mark.django_db

PAGE = 100
FULL_SIZE = 2_000_000

#: What the rows refer to.
NAMES = [
    "queue (id, name) overriding system value select n, 'queue' || n from generate_series(1, 3) as n",
    "job_type (id, name) overriding system value values (1, 'shop.send_receipt')",
]


class Numbered(Years):
    """With ids as jobs have them."""

    oldest_id = 1_000


@pytest.fixture(scope="module", params=[30_000, pytest.param(FULL_SIZE, marks=pytest.mark.drill)])
def years(request, django_db_setup, django_db_blocker):
    """So many jobs in thirteen weekly partitions."""
    with django_db_blocker.unblock():
        empty_broker_tables()
        rows = Rows(open_gateway("default", "test years", **PATIENT))
        for name in NAMES:
            rows.run(f"insert into pgbroker.{name}")
        made = Numbered(rows, request.param)
        rows.run("analyze pgbroker.archived_job")
        rows.run("analyze pgbroker.execution")
        try:
            yield made
        finally:
            made.remove()
            empty_broker_tables()
            rows.gateway.connection.close()


def count_rows(query):
    """How many rows the scans of this query touch."""
    with connection.cursor() as cursor:
        cursor.execute(f"explain (analyze, timing off, format json) {query}")
        return sum(_rows_of(cursor.fetchone()[0][0]["Plan"]))


def _rows_of(node):
    if node["Node Type"].endswith("Scan"):
        removed = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
        yield (node["Actual Rows"] + removed) * node["Actual Loops"]
    for child in node.get("Plans", []):
        yield from _rows_of(child)


def look(browser, address):
    """Open a page; the page and its queries on the broker's tables."""
    with CaptureQueriesContext(connection) as captured:
        page = browser.get(address)
    assert page.status_code == 200
    assert len(captured) <= 9
    queries = [query["sql"] for query in captured if '"pgbroker".' in query["sql"]]
    for query in queries:
        assert not re.search(r"count\(|\soffset\s", query, re.IGNORECASE), query
    return page, queries


def rows_of(page):
    return page.context["cl"].result_list


@pytest.mark.parametrize("model", ["archivedjob", "execution"])
def test_b085_a_list_and_its_second_page_touch_a_page_of_rows(years, operator, model):
    first, queries = look(operator, list_url(model))
    assert len(rows_of(first)) == PAGE
    second, more = look(operator, list_url(model) + first.context["cl"].older_query)
    assert len(rows_of(second)) == PAGE
    assert len(more) == len(queries)
    for query in [*queries, *more]:
        assert count_rows(query) <= 4 * PAGE, query


def test_b085_the_page_of_a_job_and_the_search_for_it_touch_its_own_rows(years, operator):
    page, queries = look(operator, detail_url("archivedjob", years.oldest_id + 7))
    assert str(years.oldest_id + 7) in page.content.decode()
    found, more = look(operator, f"{list_url('archivedjob')}?q={years.oldest_id + 7}")
    assert [row.pk for row in rows_of(found)] == [years.oldest_id + 7]
    for query in [*queries, *more]:
        assert count_rows(query) <= 4 * PAGE, query


@pytest.mark.parametrize("query", ["state=10", "state=11", "state=12", "state=13", "queue=2", "state=12&queue=2"])
def test_b085_a_filter_touches_a_bounded_number_of_rows_whatever_it_finds(years, operator, monkeypatch, query):
    """The window is as large a part of the table as at the full size; a small partition may be read whole."""
    window = WINDOW_ROWS * years.count // FULL_SIZE
    monkeypatch.setattr(KeysetChangeList, "window_rows", window)
    _, queries = look(operator, f"{list_url('archivedjob')}?{query}")
    for each in queries:
        assert count_rows(each) <= window + years.count / 13 + 3 * PAGE, each
