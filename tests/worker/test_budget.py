"""How many connections workers need, and whether the server could grant them."""

import pytest
from django.db import connections

from django_pgbroker.domain.errors import ConfigurationError
from django_pgbroker.store.connection_limits import ConnectionLimit, find_connection_limits
from django_pgbroker.store.gateway import CallerGateway
from django_pgbroker.worker.budget import Budget, count_connections, make_budget
from django_pgbroker.worker.options import WorkerOptions, parse_queues

SERVER = ConnectionLimit("server", "", allowed=97, used=10)
ROLE = ConnectionLimit("role", "shop", allowed=20, used=3)
DATABASE = ConnectionLimit("database", "shop_db", allowed=50, used=45)


@pytest.mark.parametrize(
    ("concurrency", "processes", "has_listener", "has_maintenance", "needed"),
    [
        # turns, heartbeats and announcements of each process; LISTEN; the duties of the first two; the slots
        (10, 1, True, True, 3 + 1 + 1 + 10),
        (10, 1, False, True, 3 + 1 + 10),
        (10, 1, True, False, 3 + 1 + 10),
        (10, 3, True, True, 3 * (3 + 1 + 10) + 2),
        (1, 64, False, False, 64 * (3 + 1)),
    ],
)
def test_every_process_needs_its_own_and_one_a_slot(concurrency, processes, has_listener, has_maintenance, needed):
    counted = count_connections(
        concurrency, processes, has_listener=has_listener, has_maintenance=has_maintenance, pool=None
    )
    assert counted == needed


@pytest.mark.parametrize(
    ("pool", "concurrency", "handlers"),
    [
        (False, 10, 10),
        (True, 10, 4),
        (True, 2, 4),  # it keeps four ready
        ({"min_size": 2, "max_size": 6}, 10, 6),
        ({"min_size": 2, "max_size": 6}, 3, 3),
        ({"min_size": 2, "max_size": 6}, 1, 2),
        ({"min_size": 8, "max_size": None}, 10, 8),
        ({"timeout": 5}, 10, 4),
    ],
)
def test_a_pool_bounds_the_connections_of_the_handlers(pool, concurrency, handlers):
    assert count_connections(concurrency, has_listener=True, has_maintenance=False, pool=pool) == 4 + handlers


@pytest.mark.parametrize(
    ("pool", "slots", "children", "handlers"),
    [(None, 10, 4, 14), (None, 0, 4, 4), ({"min_size": 2, "max_size": 6}, 10, 4, 6 + 4 * 2), (True, 0, 2, 2 * 4)],
)
def test_each_child_process_has_a_connection_or_a_pool_of_its_own(pool, slots, children, handlers):
    counted = count_connections(slots, children=children, has_listener=False, has_maintenance=False, pool=pool)
    assert counted == 3 + handlers


def test_executors_that_no_job_type_needs_are_not_counted(broker_database, declare, settings):
    settings.PGBROKER = {"QUEUES": {"own": {}}, "ASYNC_DATABASE_THREADS": 3, "DEFAULT_QUEUE": "own"}

    @declare(executor="thread")
    def in_a_thread(): ...

    @declare()
    async def on_a_loop(): ...

    @declare(executor="process")
    def in_a_child(): ...

    def needed(*names):
        options = WorkerOptions(
            parse_queues("own"),
            10,
            async_concurrency=100,
            child_processes=4,
            types=tuple(f"tests.{each}" for each in names),
        )
        return make_budget(options, with_maintenance=False, asks_limits=False).needed - 4, options.describe_capacity()

    assert needed("in_a_thread") == (10, "10 slots")
    assert needed("on_a_loop") == (3, "100 tasks")
    assert needed("in_a_child") == (4, "4 child processes")
    assert needed("in_a_thread", "on_a_loop", "in_a_child") == (17, "10 slots, 100 tasks, 4 child processes")


def test_what_no_limit_could_grant_is_refused_with_the_narrowest_one_and_the_way_out():
    Budget(20, [SERVER, ROLE, DATABASE]).check()
    with pytest.raises(ConfigurationError) as refusal:
        Budget(21, [SERVER, ROLE, DATABASE]).check()
    text = str(refusal.value)
    assert "up to 21 connections, and the role 'shop' allows 20" in text
    assert "lower --processes or --concurrency" in text
    assert "raise the connection limit of the role 'shop'" in text
    assert "OPTIONS['pool']" in text
    with pytest.raises(ConfigurationError, match="the server allows 97: .* raise max_connections of the server"):
        Budget(98, [SERVER]).check()


def test_less_that_is_free_than_may_be_needed_is_a_warning_only():
    budget = Budget(6, [SERVER, ROLE, DATABASE])
    budget.check()
    assert "only 5 of the 50 connections that the database 'shop_db' allows are free now" in budget.warning()
    assert Budget(5, [SERVER, ROLE, DATABASE]).warning() == ""


def test_where_the_limits_are_not_known_nothing_is_refused():
    budget = Budget(1_000_000)
    budget.check()
    assert budget.warning() == ""
    assert str(budget) == "At most 1,000,000 connections"


def test_the_server_tells_its_limit_and_what_others_use(broker_database, rows):
    superuser, most, kept = (
        rows.one("select rolsuper from pg_roles where rolname = session_user"),
        int(rows.one("show max_connections")),
        int(rows.one("show superuser_reserved_connections")),
    )
    before = {limit.kind: limit for limit in find_connection_limits(CallerGateway("default"))}
    assert before["server"].allowed == (most if superuser else most - kept)
    another = connections["default"].copy()
    try:
        another.ensure_connection()
        after = {limit.kind: limit for limit in find_connection_limits(CallerGateway("default"))}
    finally:
        another.close()
    # other clones may use the same server
    assert 1 <= before["server"].used < after["server"].allowed
    assert after["server"].used >= 2, "that of the test and the other one, without the one that asks"


def test_behind_a_pooler_the_limits_are_not_asked(broker_database, django_assert_num_queries):
    options = WorkerOptions(parse_queues("default"), 10, types=("documents.*",))
    with django_assert_num_queries(0):
        assert make_budget(options, with_maintenance=True, asks_limits=False) == Budget(15)
    with django_assert_num_queries(1):
        assert make_budget(options, with_maintenance=True).limits
