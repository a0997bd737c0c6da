"""The broker's own connections: made from Django's parameters, with settings of their own."""

import copy

import psycopg
import pytest
from django.db import connections

from django_pgbroker.runtime.connections import open_connection, open_gateway
from tests.maintenance.connections import rows
from tests.maintenance.waiting import wait_until

__all__ = ["rows"]


@pytest.fixture
def opened(broker_database):
    made = []

    def open_one(role="test", **settings):
        made.append(open_connection("default", role, **settings))
        return made[-1]

    yield open_one
    for connection in made:
        connection.close()


def show(connection, name):
    return connection.execute("select current_setting(%s)", [name]).fetchone()[0]


def test_it_goes_to_the_database_of_the_alias_also_when_that_is_a_test_database(opened):
    name = opened().execute("select current_database()").fetchone()[0]
    assert name == connections["default"].settings_dict["NAME"]


def test_it_is_not_the_connection_of_the_handlers(opened):
    with connections["default"].cursor() as cursor:
        cursor.execute("select pg_backend_pid()")
        assert cursor.fetchone()[0] != opened().info.backend_pid


def test_it_commits_by_itself_and_prepares_from_the_first_use(opened):
    connection = opened()
    assert connection.autocommit
    assert connection.prepare_threshold == 0


def test_people_see_what_it_is_for_and_a_long_name_is_cut(opened):
    assert show(opened("worker host:1"), "application_name") == "pgbroker worker host:1"
    assert show(opened("x" * 200), "application_name") == "pgbroker " + "x" * 54


def test_no_statement_waits_for_ever(opened):
    connection = opened()
    assert show(connection, "statement_timeout") == "30s"
    assert show(connection, "lock_timeout") == "5s"
    assert show(connection, "idle_in_transaction_session_timeout") == "15s"
    assert show(connection, "TimeZone") == "UTC"


def test_bad_statistics_cannot_choose_a_scan_of_the_live_table(opened):
    connection = opened()
    assert {show(connection, f"enable_{name}") for name in ("seqscan", "bitmapscan", "sort")} == {"off"}
    assert show(connection, "jit") == "off"


def test_a_caller_may_replace_a_setting(opened):
    connection = opened(statement_timeout="1234ms", enable_seqscan="on")
    assert show(connection, "statement_timeout") == "1234ms"
    assert show(connection, "enable_seqscan") == "on"


@pytest.fixture
def alias():
    """Makes another alias of the test database with options of its own."""
    made = []

    def alias(**options):
        given = copy.deepcopy(connections["default"].settings_dict)
        given["OPTIONS"] = {**given["OPTIONS"], **options}
        connections.databases["beside"] = given
        made.append("beside")
        return "beside"

    yield alias
    if made:
        connections["beside"].close()
        del connections["beside"], connections.databases["beside"]


def test_options_of_the_alias_are_kept_where_the_broker_has_no_wish_of_its_own(broker_database, alias):
    name = alias(options="-c work_mem=5MB -c statement_timeout=1s", sslmode="prefer")
    with open_connection(name, "test") as connection:
        assert show(connection, "work_mem") == "5MB"
        assert show(connection, "statement_timeout") == "30s"


def test_a_role_that_the_alias_assumes_is_assumed(broker_database, alias):
    with open_connection(alias(assume_role="pg_monitor"), "test") as connection:
        assert connection.execute("select current_user").fetchone()[0] == "pg_monitor"


def test_a_connection_whose_settings_are_refused_is_closed(broker_database, alias, rows):
    with pytest.raises(psycopg.Error, match="no_such_role") as refusal:
        open_connection(alias(assume_role="no_such_role"), "refused")
    opened = "select count(*) from pg_stat_activity where application_name = 'pgbroker refused'"
    wait_until(lambda: rows.one(opened) == 0, "its server process is gone")
    assert refusal.traceback, "it is kept until here, and its frames with it"


def test_a_pool_and_server_side_binding_of_the_alias_are_none_of_its_business(broker_database, alias):
    with open_connection(alias(server_side_binding=True), "test") as connection:
        assert connection.execute("select %s::int", [7]).fetchone()[0] == 7


def test_a_server_that_is_not_there_is_an_operational_error(broker_database, alias, tmp_path):
    name = alias()
    connections.databases[name].update(HOST=str(tmp_path), PORT=5432)
    with pytest.raises(psycopg.OperationalError, match="No such file or directory"):
        open_connection(name, "test")


def test_whole_numbers_travel_as_bigint_so_that_one_prepared_statement_serves_all(opened):
    connection = opened()
    assert connection.execute("select pg_typeof(%s)::text, pg_typeof(%s)::text", [1, 2**40]).fetchone() == (
        "bigint", "bigint",
    )  # fmt: skip


def test_a_gateway_runs_named_statements_on_it(broker_database):
    gateway = open_gateway("default", "test")
    try:
        assert gateway.fetch_one("is_installed")[0]
    finally:
        gateway.connection.close()
