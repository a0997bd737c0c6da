"""What ``pgbroker_status`` prints, for people and for scripts."""

import json
import re
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from django_pgbroker.models import Queue
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def without_declared_names(db: None) -> None:
    """Migrate declares names; these tests say themselves what there is."""
    Queue.objects.all().delete()


def status(*arguments: str) -> str:
    output = StringIO()
    call_command("pgbroker_status", *arguments, stdout=output)
    return output.getvalue()


def sampled_queue(name: str, **fields: object) -> object:
    counts = dict.fromkeys(("running_count", "scheduled_count", "parked_count", "blocked_count"), 0)
    return factories.QueueFactory(name=name, **({"sampled_at": timezone.now(), "pending_count": 0} | counts | fields))


def test_an_empty_broker_says_what_to_do_next():
    text = status()

    assert "No queue yet" in text
    assert "manage.py pgbroker_worker" in text
    assert json.loads(status("--json")) == {"queues": [], "workers": [], "unknown_types": []}


def test_queues_are_printed_with_the_longest_wait_first():
    now = timezone.now()
    sampled_queue("idle")
    sampled_queue("brisk", pending_count=2, oldest_pending_at=now - timedelta(seconds=5))
    sampled_queue("late", pending_count=1234, oldest_pending_at=now - timedelta(minutes=3), running_count=7)

    lines = status().splitlines()
    columns = re.split(r" {2,}", lines[1])

    assert [line.split()[0] for line in lines[:4]] == ["queue", "late", "brisk", "idle"]
    assert columns[2:7] == ["1,234", "7", "0", "0", "0"]
    assert columns[1].startswith("3 min")
    assert [queue["name"] for queue in json.loads(status("--json"))["queues"]] == ["late", "brisk", "idle"]


def test_json_gives_numbers_and_judgements():
    now = timezone.now()
    sampled_queue("late", pending_count=9, oldest_pending_at=now - timedelta(minutes=3), paused_at=now, paused_by="ada")

    (queue,) = json.loads(status("--json"))["queues"]

    assert 180 <= queue["oldest_pending_seconds"] < 240
    assert (queue["pending"], queue["is_paused"], queue["is_stale"], queue["paused_by"]) == (9, True, False, "ada")


def test_old_samples_are_marked_and_fresh_ones_are_not():
    sampled_queue("fresh")
    assert "*" not in status()

    sampled_queue("old", sampled_at=timezone.now() - timedelta(seconds=31))
    factories.QueueFactory(name="new")
    text = status()

    assert re.search(r"^old .*\d+ s ago \* +active$", text, re.M)
    assert re.search(r"^new .* never \* +active$", text, re.M)
    assert re.search(r"^fresh .*(just now|s ago) +active$", text, re.M)
    assert "missing or older than 30 s" in text
    assert {q["name"]: q["is_stale"] for q in json.loads(status("--json"))["queues"]} == {
        "fresh": False,
        "old": True,
        "new": True,
    }


def test_a_pause_is_told_with_its_author_and_reason():
    sampled_queue("mail", paused_at=timezone.now(), paused_by="ada", pause_reason="bank is down")

    assert "paused by ada: bank is down" in status()


def test_workers_are_alive_draining_or_lost():
    now = timezone.now()
    factories.WorkerFactory(name="alive", heartbeat_at=now, queues={"default": 1, "critical": 5}, running_count=3)
    factories.WorkerFactory(name="silent", heartbeat_at=now - timedelta(seconds=61))
    factories.WorkerFactory(name="buried", heartbeat_at=now, stopped_at=now, stop_reason="lost")
    factories.WorkerFactory(name="leaving", heartbeat_at=now, drain_requested_at=now)
    factories.WorkerFactory(name="gone", heartbeat_at=now, stopped_at=now, stop_reason="drained")
    factories.WorkerFactory(name="forgotten", stopped_at=now - timedelta(hours=2), stop_reason="lost")

    workers = {worker["name"]: worker["presence"] for worker in json.loads(status("--json"))["workers"]}

    assert workers == {"alive": "alive", "silent": "lost", "buried": "lost", "leaving": "draining"}
    assert re.search(r"^\d+ +alive +alive +.*3/10 +default, critical:5 ", status(), re.M)
    assert "No live worker" not in status()


def test_a_queue_with_pending_jobs_that_no_live_worker_serves_says_so():
    now = timezone.now()
    for name, pending in (("mail", 3), ("mial", 2), ("empty", 0)):
        factories.QueueFactory(name=name, pending_count=pending, sampled_at=now)
    factories.WorkerFactory(name="alive", heartbeat_at=now, queues={"mail": 1})
    factories.WorkerFactory(name="silent", heartbeat_at=now - timedelta(seconds=61), queues={"mial": 1})

    states = {line.split()[0]: line.split("  ")[-1].strip() for line in status().splitlines()[1:4]}

    assert states == {"mail": "active", "mial": "no worker", "empty": "active"}


def test_lost_workers_alone_are_no_live_worker():
    factories.WorkerFactory(name="silent", heartbeat_at=timezone.now() - timedelta(seconds=61))

    assert "No live worker" in status()
    assert "silent" in status()


def test_job_types_that_no_live_worker_knows_are_named():
    known, parked, pending = (
        factories.JobTypeFactory(name=name) for name in ("shop.known", "old.parked", "new.pending")
    )
    factories.WorkerFactory(job_type_ids=[known.pk], heartbeat_at=timezone.now())
    factories.WorkerFactory(job_type_ids=[parked.pk], heartbeat_at=timezone.now() - timedelta(minutes=2))
    factories.JobFactory(job_type=known)
    factories.JobFactory.create_batch(2, job_type=pending, queue=factories.QueueFactory(name="other"))
    factories.JobFactory(job_type=parked, state=4, parked_reason=4, parked_on=-parked.pk)
    factories.JobFactory(job_type=factories.JobTypeFactory(name="later.scheduled"), scheduled=True)

    assert json.loads(status("--json"))["unknown_types"] == [
        {"name": "new.pending", "waiting": 2},
        {"name": "old.parked", "waiting": 1},
    ]
    assert "No live worker knows these job types" in status()


def test_without_any_live_worker_no_type_is_called_unknown():
    factories.JobFactory()

    assert json.loads(status("--json"))["unknown_types"] == []


def test_names_cannot_steer_the_terminal():
    sampled_queue("\x1b[2J\nfake  active")

    text = status()

    assert "\x1b" not in text
    assert "\\x1b[2J\\nfake" in text


def test_an_unknown_database_is_an_error_that_names_it():
    with pytest.raises(CommandError, match="'replica' is no alias"):
        status("--database", "replica")


def test_a_database_without_the_schema_is_an_error_that_says_migrate():
    from django.db import connection, transaction

    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("alter schema pgbroker rename to elsewhere")
        with pytest.raises(CommandError, match="manage.py migrate --database default"), transaction.atomic():
            status()
        with connection.cursor() as cursor:
            cursor.execute("alter schema elsewhere rename to pgbroker")


def test_the_help_explains_the_json():
    from django_pgbroker.management.commands.pgbroker_status import Command

    text = Command().create_parser("manage.py", "pgbroker_status").format_help()

    for key in ("oldest_pending_seconds", "sampled_seconds_ago", "unknown_types", "presence"):
        assert key in text
