"""The gateway behind PgBouncer: what it leaves on the server, and what it minds of what others have left there."""

import psycopg
import pytest
from django.db import connection
from psycopg import errors

from django_pgbroker.runtime.connections import open_gateway
from tests.maintenance.waiting import wait_until
from tests.migrations.conftest import as_alias
from tests.pooler.conftest import POOLED, moved_behind
from tests.pooler.traces import CLEAN, read_traces

OURS = {
    "transaction_isolation": "read committed",
    "TimeZone": "UTC",
    "statement_timeout": "30s",
    "lock_timeout": "5s",
    "idle_in_transaction_session_timeout": "15s",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_sort": "off",
    "jit": "off",
}


@pytest.fixture
def bouncer(bounce):
    """One server connection, so that every client meets what the last one has left."""
    return bounce(1)


@pytest.fixture
def gateway(behind):
    opened = open_gateway("default", "test")
    yield opened
    opened.connection.close()


def show(gateway, name):
    return gateway.connection.execute("select current_setting(%s)", [name]).fetchone()[0]


def test_each_kind_of_statement_leaves_nothing_behind(gateway, bouncer):
    assert gateway.fetch_one("is_installed") == (True,)
    with gateway.transaction():
        gateway.fetch("find_busiest_queue")
    with gateway.pipelined_transaction():
        answer = gateway.send("find_busiest_queue")
    assert answer.fetchall() == []
    assert list(read_traces(bouncer).values()) == [CLEAN]


def test_a_flush_behind_the_end_of_a_pipeline_does_not_keep_the_server_connection(gateway, bouncer, monkeypatch):
    """What psycopg sends now and then, sent every time."""
    let_go = gateway._let_go

    def flush_and_let_go():
        gateway.connection.pgconn.enter_pipeline_mode()
        gateway.connection.pgconn.send_flush_request()
        gateway.connection.pgconn.flush()
        gateway.connection.pgconn.exit_pipeline_mode()
        let_go()

    monkeypatch.setattr(gateway, "_let_go", flush_and_let_go)
    assert gateway.fetch_one("is_installed") == (True,)
    with bouncer.connect() as other:
        assert other.execute("select 1").fetchone() == (1,)


def test_what_another_client_has_set_disturbs_no_transaction(gateway, bouncer):
    with bouncer.connect() as other:
        for name, value in {
            "default_transaction_isolation": "serializable", "enable_seqscan": "on", "enable_sort": "on",
            "statement_timeout": "100ms", "lock_timeout": "1ms", "timezone": "Asia/Tokyo", "search_path": "nowhere",
            "idle_in_transaction_session_timeout": "1h", "jit": "on",
        }.items():  # fmt: skip
            other.execute(f"set {name} = '{value}'")

        with gateway.transaction():
            assert {name: show(gateway, name) for name in OURS} == OURS
        with gateway.pipelined_transaction():
            answers = {name: gateway.connection.execute("select current_setting(%s)", [name]) for name in OURS}
        assert {name: answer.fetchone()[0] for name, answer in answers.items()} == OURS
        assert gateway.fetch_one("is_installed") == (True,)

        assert other.execute("show statement_timeout").fetchone() == ("100ms",)
        other.execute("discard all")


def test_an_error_rolls_back_and_the_gateway_goes_on(gateway, bouncer):
    with pytest.raises(errors.UndefinedFunction), gateway.transaction():
        gateway.connection.execute("select no_such_function()")
    with pytest.raises(errors.DivisionByZero), gateway.pipelined_transaction():
        gateway.connection.execute("select 1 / 0")
    with pytest.raises(errors.InvalidTextRepresentation):
        gateway.fetch("find_job", {"id": "no number", "since": None})
    assert gateway.fetch_one("is_installed") == (True,)
    assert list(read_traces(bouncer).values()) == [CLEAN]


def test_a_transaction_within_a_transaction_is_a_savepoint(gateway):
    with gateway.transaction():
        gateway.connection.execute("insert into pgbroker.queue (name) values ('kept')")
        with pytest.raises(errors.UniqueViolation), gateway.transaction():
            gateway.connection.execute("insert into pgbroker.queue (name) values ('undone'), ('kept')")
        assert show(gateway, "enable_seqscan") == "off"
    with connection.cursor() as cursor:
        cursor.execute("select name from pgbroker.queue")
        assert cursor.fetchall() == [("kept",)]


def test_the_number_of_its_server_process_is_not_known(gateway):
    with gateway.transaction():
        real = gateway.connection.execute("select pg_backend_pid()").fetchone()[0]
    assert gateway.connection.info.backend_pid != real, "PgBouncer invents one"
    assert gateway.process_id is None


def test_people_see_what_it_is_for(gateway):
    with gateway.transaction():
        assert show(gateway, "application_name") == "pgbroker test"


def test_a_role_is_assumed_for_the_transaction_alone(behind):
    connection.settings_dict["OPTIONS"]["assume_role"] = "pg_monitor"
    gateway = open_gateway("default", "test")
    try:
        with gateway.transaction():
            assert show(gateway, "role") == "pg_monitor"
    finally:
        gateway.connection.close()
    assert list(read_traces(behind).values()) == [CLEAN]


def test_options_that_the_pooler_would_refuse_are_not_sent(behind, monkeypatch):
    monkeypatch.setenv("PGOPTIONS", "-c work_mem=6MB")
    connection.settings_dict["OPTIONS"]["options"] = "-c work_mem=5MB"
    gateway = open_gateway("default", "test")
    try:
        assert gateway.fetch_one("is_installed") == (True,)
    finally:
        gateway.connection.close()


def test_a_statement_and_the_wait_for_a_server_connection_are_bounded(behind):
    gateway = open_gateway("default", "test", statement_timeout="200ms")
    try:
        with pytest.raises(errors.QueryCanceled), gateway.transaction():
            gateway.connection.execute("select pg_sleep(60)")
        with behind.connect() as other, other.transaction():
            other.execute("select 1")
            with pytest.raises(psycopg.OperationalError, match="said nothing"):
                gateway.fetch("is_installed")
    finally:
        gateway.connection.close()


def test_a_direct_alias_beside_it_is_as_ever(bouncer, settings):
    with as_alias(bouncer.database) as pooled:
        settings.PGBROKER = {**POOLED, "DATABASE": pooled, "LISTEN_DATABASE": "default"}
        assert_is_direct("default")


def assert_is_direct(alias):
    gateway = open_gateway(alias, "test")
    try:
        assert show(gateway, "enable_seqscan") == "off"
        assert gateway.process_id == gateway.connection.execute("select pg_backend_pid()").fetchone()[0]
    finally:
        gateway.connection.close()


def test_a_pooler_that_nobody_told_of_is_why_it_is_asked_for(bouncer):
    """What would happen: the settings of one connection are those of the next client."""
    with moved_behind(bouncer):
        gateway = open_gateway("default", "test")
        gateway.connection.close()
        wait_until(lambda: bouncer.count_waiting() == 0, "nobody waits")
        [traces] = read_traces(bouncer).values()
    assert traces.settings["enable_seqscan"] == "off"


def test_a_transaction_that_stands_still_is_ended_by_the_server_where_it_knows_how(behind):
    gateway = open_gateway("default", "test", transaction_timeout="300ms")
    try:
        if gateway.connection.info.server_version < 170_000:
            assert gateway.fetch_one("is_installed") == (True,), "the setting is not sent"
            return
        with pytest.raises(errors.TransactionTimeout), gateway.transaction():
            gateway.connection.execute("select pg_sleep(60)")
    finally:
        gateway.connection.close()
