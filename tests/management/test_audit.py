"""What ``pgbroker_audit`` prints: newest first, page by page, by actor, action, time and target."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_pgbroker.management.audit_rows import AUDIT_HEAD
from django_pgbroker.operations import pages
from django_pgbroker.operations.audit_log import AuditQuery, read_audit
from tests.management.commands import HOSTILE, audit, has_control_characters, run

pytestmark = pytest.mark.django_db


def ids(*arguments: str) -> list[int]:
    return [entry["id"] for entry in run("pgbroker_audit", *arguments, "--json").json["entries"]]


def test_the_newest_entry_comes_first_with_all_that_it_holds():
    first = audit(reason="why", before={"state": 0}, after={"state": 11}, count=3)
    second = audit(actor="grace")

    newest, older = run("pgbroker_audit", "--json").json["entries"]

    assert (newest["id"], newest["actor"]) == (second.pk, "grace")
    assert older == {
        "id": first.pk,
        "occurred_at": older["occurred_at"],
        "actor": "ada",
        "source": "code",
        "action": "job.cancel",
        "target": {"jobs": [7]},
        "reason": "why",
        "before": {"state": 0},
        "after": {"state": 11},
        "count": 3,
        "tenant": None,
    }


def test_filters_by_who_what_and_from_where():
    mine, other, paused = audit(), audit(actor="grace", source="ui"), audit(action="queue.pause", source="duty")

    assert ids("--actor", "ada") == [paused.pk, mine.pk]
    assert ids("--action", "job.cancel") == [other.pk, mine.pk]
    assert ids("--source", "ui") == [other.pk]
    assert ids("--actor", "ada", "--action", "queue.pause") == [paused.pk]
    assert ids("--actor", "nobody") == []


def test_filters_by_what_it_was_done_to():
    one, many = audit(), audit(target={"jobs": [5, 7, 9], "filter": {"queue": "mail"}})
    queue, worker = audit(target={"queue": "mail"}), audit(target={"worker": 3, "name": "host:1"})

    assert ids("--job", "7") == [many.pk, one.pk]
    assert ids("--job", "9") == [many.pk]
    assert ids("--job", "70") == []
    assert ids("--queue", "mail") == [queue.pk]
    assert ids("--worker", "3") == [worker.pk]


def test_filters_by_time_as_a_span_or_a_moment_with_a_zone():
    now = timezone.now()
    old, new = audit(occurred_at=now - timedelta(hours=3)), audit(occurred_at=now - timedelta(minutes=5))

    assert ids("--since", "2h") == [new.pk]
    assert ids("--until", "2h") == [old.pk]
    assert ids("--since", (now - timedelta(hours=4)).isoformat(), "--until", "1min") == [new.pk, old.pk]


@pytest.mark.parametrize("when", ["2 hours", "2026-11-30T08:00", "yesterday", "99999999999d", "999999999w"])
def test_a_time_that_is_none_is_refused_with_what_to_write(when):
    ran = run("pgbroker_audit", "--since", when)

    assert ran.status == 1
    assert "span" in ran.error or "time zone" in ran.error


def test_pages_lead_through_all_entries_once():
    every = [audit().pk for _ in range(5)]

    first = run("pgbroker_audit", "--limit", "2")
    assert [int(row[0]) for row in first.rows] == every[:2:-1]
    assert f"--after {every[3]}" in first.error
    second = run("pgbroker_audit", "--limit", "2", "--after", str(every[3]), "--json").json
    assert [entry["id"] for entry in second["entries"]] == [every[2], every[1]]
    last = run("pgbroker_audit", "--limit", "2", "--after", str(second["next_after"]))
    assert [int(row[0]) for row in last.rows] == [every[0]]
    assert last.error == ""


def test_pages_of_one_job_go_on_too():
    every = [audit().pk for _ in range(3)]

    first = run("pgbroker_audit", "--job", "7", "--limit", "2", "--json").json
    assert [entry["id"] for entry in first["entries"]] == [every[2], every[1]]
    rest = run("pgbroker_audit", "--job", "7", "--after", str(first["next_after"]), "--json").json
    assert ([entry["id"] for entry in rest["entries"]], rest["next_after"]) == ([every[0]], None)


def test_a_filter_without_an_index_looks_at_a_bounded_number_of_rows(monkeypatch):
    rare = audit(actor="rare")
    for _ in range(6):
        audit()
    monkeypatch.setitem(pages.read_page.__kwdefaults__, "window_rows", 4)

    page = read_audit(AuditQuery(actor="rare"))
    assert page.rows == ()
    assert page.next_before is not None
    rest = read_audit(AuditQuery(actor="rare"), before=page.next_before)
    assert [entry.pk for entry in rest.rows] == [rare.pk]
    assert rest.next_before is None


def test_entries_of_a_job_are_found_by_the_index_of_targets():
    with connection.cursor() as cursor:
        cursor.execute(
            "insert into pgbroker.audit_entry (actor, source, action, target)"
            " select 'ada', 'code', 'job.cancel', jsonb_build_object('jobs', array[n]) from generate_series(1, 40000) n"
        )
        cursor.execute("analyze pgbroker.audit_entry")
    with CaptureQueriesContext(connection) as seen:
        assert len(read_audit(AuditQuery(job_id=17), limit=1).rows) == 1
    with connection.cursor() as cursor:
        cursor.execute("explain " + seen.captured_queries[-1]["sql"])
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "audit_entry_target" in plan, plan


def test_piped_lines_are_tab_separated_and_no_stored_word_breaks_them():
    for text in HOSTILE:
        audit(actor=text, reason=text, target={"queue": text})

    ran = run("pgbroker_audit")

    assert ran.out.splitlines()[0].split("\t") == [*AUDIT_HEAD]
    assert {len(row) for row in ran.rows} == {len(AUDIT_HEAD)}
    assert len(ran.rows) == len(HOSTILE)
    assert not has_control_characters(ran.out)
    assert [entry["actor"] for entry in run("pgbroker_audit", "--json").json["entries"]] == HOSTILE[::-1]


def test_a_terminal_shows_aligned_columns_that_no_stored_word_can_steer():
    for text in HOSTILE:
        audit(actor=text)

    ran = run("pgbroker_audit", terminal=True)

    assert "\t" not in ran.out
    assert not has_control_characters(ran.out)
    assert len(ran.out.splitlines()) == len(HOSTILE) + 1
    assert run("pgbroker_audit", "--actor", "none", terminal=True).out == "No entry in the audit log.\n"


def test_an_unknown_alias_is_an_error_that_says_so():
    assert run("pgbroker_audit", "--database", "nowhere").status == 1
