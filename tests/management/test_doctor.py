"""``pgbroker_doctor``: every ailment is found with its remedy, and a healthy broker is left in peace."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import override_settings
from django.utils import timezone
from psycopg import sql

from django_pgbroker.management.commands.pgbroker_doctor import Command
from django_pgbroker.operations.doctor import examination, server, sessions, tables
from django_pgbroker.operations.doctor.examination import EXAMINATIONS, Diagnosis
from django_pgbroker.operations.doctor.finding import Finding, Level, Subject
from django_pgbroker.operations.doctor.schema import EXPECTED_INDEXES
from django_pgbroker.runtime.connections import open_gateway
from django_pgbroker.store.doctor import inspect_indexes
from tests import factories
from tests.maintenance.waiting import wait_until


@pytest.fixture
def subject(broker_database):
    gateway = open_gateway("default", "test doctor")
    yield Subject("default", gateway)
    gateway.connection.close()


@pytest.fixture
def fresh_queues(broker_database):
    """A broker at work: a queue sampled just now, and a worker that lives."""
    factories.QueueFactory(name="default", sampled_at=timezone.now(), pending_count=0)
    factories.WorkerFactory(name="alive", heartbeat_at=timezone.now(), clock_skew_seconds=0.01)
    connection.cursor().execute("update pgbroker.queue set sampled_at = now()")


def look(topic, subject):
    return EXAMINATIONS[topic](subject)


#: Topics that other databases of the test's server, or its settings, have a say in.
OF_THE_SERVER = {"connections", "wraparound", "replication_slots", "server_settings", "notify_queue"}

STATUS = {"ok": 0, "warning": 1, "alarm": 2}


def doctor(*arguments):
    """The exit status and the output."""
    output = StringIO()
    try:
        call_command("pgbroker_doctor", *arguments, stdout=output)
    except SystemExit as end:
        return end.code, output.getvalue()
    return 0, output.getvalue()


def test_a_healthy_broker_has_no_warning_and_the_exit_status_is_zero(fresh_queues, rows):
    status, text = doctor("--json")
    found = json.loads(text)

    ours = {each["topic"]: each for each in found["findings"] if each["topic"] not in OF_THE_SERVER}
    assert {topic: each["summary"] for topic, each in ours.items() if each["level"] != "ok"} == {}
    assert {each["topic"] for each in found["findings"]} == set(EXAMINATIONS)
    assert status == STATUS[found["level"]]


def test_warnings_and_alarms_are_told_by_text_and_exit_status(fresh_queues, rows):
    factories.WorkerFactory(name="silent\x1b[2J", heartbeat_at=timezone.now() - timedelta(minutes=2))
    status, text = doctor()
    assert status == max(STATUS["warning"], STATUS[json.loads(doctor("--json")[1])["level"]])
    assert "warning  workers" in text
    assert "1 live; 1 went silent within the last hour, the latest silent\\x1b[2J" in text
    assert "\x1b" not in text
    assert "-> Their jobs come back by themselves." in text

    rows.run(
        "insert into pgbroker.execution (job_id, lease_token, tenant_id, queue_id, job_type_id, leased_at, finished_at,"
        " attempt, outcome) values (1, 1, 1, 1, 1, now(), now() - interval '10 years', 1, 1)"
    )
    status, text = doctor()
    assert status == 2
    assert "alarm    default_partitions  1 rows are in a default partition" in text


def test_the_list_of_indexes_is_what_the_migrations_make(subject):
    found = {}
    for index in inspect_indexes(subject.gateway):
        if not index.is_partition:
            found.setdefault(index.table, set()).add(index.name)
    assert found == EXPECTED_INDEXES


@contextmanager
def undone(subject):
    """Changes of the schema inside the block are rolled back after it."""
    with subject.gateway.connection.transaction(force_rollback=True):
        yield subject.gateway.connection


def test_a_missing_index_is_an_alarm_and_so_is_a_claim_that_reads_everything(subject):
    with undone(subject) as raw:
        raw.execute("drop index pgbroker.job_claim")
        missing, plan = look("indexes", subject), look("claim_plan", subject)

    assert (missing.level, missing.figures["missing"]) == (Level.ALARM, ["job_claim"])
    assert plan.level is Level.ALARM
    assert "custom plan and the generic plan" in plan.summary
    assert look("claim_plan", subject).level is Level.OK


def test_an_invalid_index_and_one_that_is_not_ours_are_told(subject):
    with undone(subject) as raw:
        raw.execute("create index my_lure on pgbroker.job (tenant_id) where state = 0")
        extra = look("indexes", subject)
        raw.execute("update pg_index set indisvalid = false where indexrelid = 'pgbroker.job_due'::regclass")
        invalid = look("indexes", subject)

    assert (extra.level, extra.figures["extra"]) == (Level.WARNING, ["my_lure"])
    assert (invalid.level, invalid.figures["invalid"]) == (Level.ALARM, ["job_due"])
    assert "REINDEX INDEX CONCURRENTLY pgbroker.job_due" in invalid.remedy


def test_missing_and_unknown_migrations_are_told(subject):
    name = "0001_initial"
    with connection.cursor() as cursor:
        cursor.execute(
            "insert into django_migrations (app, name, applied) values ('django_pgbroker', '9999_new', now())"
        )
        try:
            assert (look("migrations", subject).level, look("migrations", subject).figures["unknown"]) == (
                Level.WARNING,
                ["9999_new"],
            )
            cursor.execute(
                "update django_migrations set name = 'x' where app = 'django_pgbroker' and name = %s", [name]
            )
            missing = look("migrations", subject)
        finally:
            cursor.execute("delete from django_migrations where app = 'django_pgbroker' and name = '9999_new'")
            cursor.execute(
                "update django_migrations set name = %s where app = 'django_pgbroker' and name = 'x'", [name]
            )
    assert (missing.level, missing.figures["missing"]) == (Level.ALARM, [name])
    assert "manage.py migrate" in missing.remedy
    assert look("migrations", subject).level is Level.OK


def test_the_holder_of_an_old_snapshot_is_named_with_the_way_to_end_it(subject, rival, monkeypatch):
    with rival.transaction():
        rival.connection.execute("select pg_current_xact_id(), 1 from pgbroker.job limit 1")
        pid = str(rival.connection.info.backend_pid)
        young = look("horizon", subject)
        monkeypatch.setattr(sessions, "_OPEN_WARNING_SECONDS", 0.0)
        old = look("horizon", subject)
    (holder,) = [each for each in young.figures["holders"] if each["holder"] == pid]

    assert (holder["kind"], holder["who"], holder["state"]) == ("session", "pgbroker test rival", "idle in transaction")
    assert 0 <= holder["open_seconds"] < 60
    assert old.level is Level.WARNING
    assert "pg_terminate_backend(" in old.remedy


def test_a_session_that_waits_for_a_lock_and_the_one_in_front_are_named(subject, rival, rows):
    with rival.transaction(), ThreadPoolExecutor(1) as pool:
        rival.connection.execute("lock table pgbroker.job in access exclusive mode")
        waiting = pool.submit(rows.one, "select count(*) from pgbroker.job")
        wait_until(lambda: look("lock_waits", subject).figures["waits"], "the reader waits")
        (wait,) = look("lock_waits", subject).figures["waits"]
        rival.connection.execute("rollback")
        waiting.result(20)

    assert (wait["application"], wait["relation"]) == ("pgbroker test rows", "pgbroker.job")
    assert wait["blockers"] == [f"{rival.connection.info.backend_pid} pgbroker test rival"]
    assert look("lock_waits", subject).level is Level.OK


def test_dead_rows_that_nobody_removes_and_a_table_without_autovacuum_are_told(subject, rows, monkeypatch):
    rows.run("vacuum pgbroker.job_payload")  # forgets the dead rows of the tests before
    options = "autovacuum_vacuum_threshold = {}, autovacuum_vacuum_scale_factor = {}"
    rows.run(f"alter table pgbroker.job_payload set (autovacuum_enabled = false, {options.format(1001, 0)})")
    try:
        rows.run(
            "insert into pgbroker.job_payload (job_id, arguments) select n, '{}' from generate_series(1, 4000) as n"
        )
        rows.run("delete from pgbroker.job_payload")
        rows.run("select pg_stat_force_next_flush()")
        switched_off = look("dead_rows", subject)
        monkeypatch.setattr(tables, "_DEAD_WARNING", 3500)
        with undone(subject) as raw:
            raw.execute("alter table pgbroker.job_payload reset (autovacuum_enabled)")
            many = look("dead_rows", subject)
    finally:
        rows.run(f"alter table pgbroker.job_payload set ({options.format(1000, 0.02)})")
        rows.run("alter table pgbroker.job_payload reset (autovacuum_enabled)")

    assert (switched_off.level, "job_payload" in switched_off.summary) == (Level.ALARM, True)
    assert (many.level, many.summary.startswith("job_payload has")) == (Level.WARNING, True)
    assert (many.figures["job_payload"]["dead"], many.figures["job_payload"]["autovacuum_from"]) == (4000, 1001)
    assert "VACUUM (ANALYZE) pgbroker.job_payload" in many.remedy


def test_a_live_table_that_is_mostly_empty_space_is_told(subject, rows, monkeypatch):
    rows.run("vacuum (analyze) pgbroker.job, pgbroker.job_payload")
    monkeypatch.setattr(tables, "_SWOLLEN_BYTES", 1000)
    found = look("sizes", subject)

    assert (found.level, "REINDEX TABLE CONCURRENTLY" in found.remedy) == (Level.WARNING, True)
    assert set(found.figures) >= {"job", "job_payload", "archived_job", "archived_job_dead", "execution"}
    assert set(found.figures["job"]) == {"table_bytes", "toast_bytes", "index_bytes"}


def test_partitions_that_run_out_are_a_warning_and_then_an_alarm(subject):
    levels = []
    with undone(subject) as raw:
        for days in (0, 12, 300):
            raw.execute(
                sql.SQL(
                    "create or replace function pgbroker.clock() returns timestamptz language sql stable"
                    " as $$ select statement_timestamp() + {} * interval '1 day' $$"
                ).format(sql.Literal(days))
            )
            levels.append(look("partitions", subject).level)
    assert levels[0] is Level.OK
    assert levels[1] in (Level.WARNING, Level.ALARM)
    assert levels[2] is Level.ALARM


def test_history_that_should_be_gone_is_told(subject):
    with undone(subject) as raw:
        raw.execute(
            "create table pgbroker.execution_old partition of pgbroker.execution"
            " for values from ('2001-01-01') to ('2001-02-01')"
        )
        found = look("retention", subject)
        with override_settings(PGBROKER={"RETENTION_DAYS": None}):
            for_ever = look("retention", subject)

    assert (found.level, found.figures["overdue"]) == (Level.WARNING, ["execution_old"])
    assert for_ever.level is Level.OK


def test_jobs_that_nobody_can_run_workers_that_are_lost_and_duties_that_nobody_does_are_told(subject, rows):
    queue = factories.QueueFactory(name="default")
    rows.run("update pgbroker.queue set sampled_at = now() - interval '1 hour', pending_count = 3")
    assert (look("workers", subject).level, look("duties", subject).level) == (Level.ALARM, Level.ALARM)

    factories.WorkerFactory(heartbeat_at=timezone.now())
    factories.JobFactory(job_type=factories.JobTypeFactory(name="old.type"), queue=queue)
    unknown = look("unknown_types", subject)

    assert look("workers", subject).level is Level.OK
    assert (unknown.level, dict(unknown.figures)) == (Level.WARNING, {"old.type": 1})


@pytest.mark.parametrize(("skew", "level"), [(0.5, Level.OK), (-3, Level.WARNING), (90, Level.ALARM)])
def test_a_worker_whose_clock_is_off_is_told(subject, skew, level):
    factories.WorkerFactory(name="w", heartbeat_at=timezone.now(), clock_skew_seconds=skew)
    factories.WorkerFactory(heartbeat_at=timezone.now(), clock_skew_seconds=0.1)

    found = look("clocks", subject)

    assert (found.level, f"{skew:+.2f} s" in found.summary) == (level, True)


def test_server_settings_that_lose_jobs_are_told(subject):
    subject.gateway.connection.execute("set synchronous_commit = off")
    figures = server.inspect_server(subject.gateway)
    found = server.judge_settings(figures._replace(autovacuum="on", fsync="on", full_page_writes="on"))

    assert (found.level, "synchronous_commit off" in found.summary) == (Level.WARNING, True)
    assert look("server_settings", subject).figures["synchronous_commit"] == "off"


def test_connections_near_their_limit_are_told(subject, rows, rival):
    name = subject.gateway.connection.info.dbname
    limit = sql.SQL("alter database {} connection limit {}")
    rows.gateway.connection.execute(limit.format(sql.Identifier(name), sql.Literal(3)))
    try:
        found = look("connections", subject)
    finally:
        rows.gateway.connection.execute(limit.format(sql.Identifier(name), sql.Literal(-1)))

    assert found.figures["allowed_here"] == 3
    assert found.figures["used_here"] >= found.figures["of_broker"] >= 3
    assert (found.level, "of 3 in this database" in found.summary) == (Level.ALARM, True)
    assert look("connections", subject).figures["allowed_here"] is None


def test_a_replication_slot_is_seen(subject, rows):
    rows.run("select pg_create_physical_replication_slot('pgbroker_test_slot', true)")
    try:
        found = look("replication_slots", subject)
    finally:
        rows.run("select pg_drop_replication_slot('pgbroker_test_slot')")

    assert "pgbroker_test_slot" in {slot["name"] for slot in found.figures["slots"]}
    assert found.level is Level.OK


def test_wraparound_the_notify_queue_and_dangerous_settings_have_levels(subject):
    # a server for tests may well be set to speed
    real = server.inspect_server(subject.gateway)._replace(
        autovacuum="on", fsync="on", full_page_writes="on", synchronous_commit="on"
    )
    oldest = tables.inspect_tables(subject.gateway)[0]

    def levels(**changed):
        figures = real._replace(**changed)
        judged = (
            tables.judge_wraparound(figures, oldest),
            server.judge_notify_queue(figures),
            server.judge_settings(figures),
        )
        return [finding.level for finding in judged]

    assert levels() == [Level.OK, Level.OK, Level.OK]
    assert levels(transaction_age=400_000_000, notify_queue_usage=0.2) == [Level.WARNING, Level.WARNING, Level.OK]
    assert levels(multixact_age=1_200_000_000, notify_queue_usage=0.6) == [Level.ALARM, Level.ALARM, Level.OK]
    assert levels(fsync="off")[2] is Level.ALARM
    assert levels(is_standby=True)[2] is Level.ALARM


def test_a_role_that_may_little_is_told_what_it_could_not_see(subject, rival, rows):
    rows.run("drop role if exists pgbroker_test_viewer")
    rows.run("create role pgbroker_test_viewer")
    try:
        rows.run("grant usage on schema pgbroker to pgbroker_test_viewer")
        rows.run("grant execute on function pgbroker.clock() to pgbroker_test_viewer")
        subject.gateway.connection.execute("set role pgbroker_test_viewer")
        with rival.transaction():
            rival.connection.execute("select pg_current_xact_id()")
            found = {topic: examination._look(look, subject) for topic, look in EXAMINATIONS.items()}
    finally:
        subject.gateway.connection.execute("reset role")
        rows.run("drop owned by pgbroker_test_viewer")
        rows.run("drop role pgbroker_test_viewer")

    unseen = {topic for topic, finding in found.items() if finding.level is Level.UNSEEN}
    assert unseen == {"claim_plan", "default_partitions", "rights"}
    assert "GRANT pg_read_all_stats" in found["rights"].remedy
    assert "permission denied" in found["claim_plan"].summary
    holder = found["horizon"].figures["holders"][0]
    assert (holder["open_seconds"], holder["transaction_age"] >= 0) == (None, True)


def test_the_worst_finding_gives_the_level_and_what_cannot_be_seen_counts_as_good():
    def level_of(*levels):
        return Diagnosis({str(number): Finding(level, "") for number, level in enumerate(levels)}).level

    assert level_of(Level.OK, Level.UNSEEN) is Level.OK
    assert level_of(Level.UNSEEN, Level.WARNING) is Level.WARNING
    assert level_of(Level.ALARM, Level.WARNING, Level.OK) is Level.ALARM


def test_a_database_without_tables_or_an_unknown_one_is_an_error_with_a_status_of_its_own(rows):
    with pytest.raises(CommandError, match="no alias") as error:
        doctor("--database", "replica")
    assert error.value.returncode == 3

    rows.run("alter schema pgbroker rename to elsewhere")
    try:
        with pytest.raises(CommandError, match=r"Run manage\.py migrate --database default"):
            doctor()
    finally:
        rows.run("alter schema elsewhere rename to pgbroker")


def test_the_page_names_every_topic():
    page = (Path(__file__).parents[2] / "docs/how-to/doctor.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE) == list(EXAMINATIONS)


def test_the_help_explains_the_exit_status_and_the_json():
    text = Command().create_parser("manage.py", "pgbroker_doctor").format_help()
    assert "0 all is well, 1 warnings, 2 alarms, 3 the database could not be examined" in text
    assert "findings   list: topic, level (ok, unseen, warning, alarm), summary, remedy" in text
