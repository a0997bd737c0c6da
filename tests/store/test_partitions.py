"""Partitions by time: created ahead in UTC, healed from the default one, safe with readers and with other builders."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import pairwise

import psycopg
import pytest

from django_pgbroker.runtime.connections import open_gateway
from django_pgbroker.store.gateway import Gateway
from django_pgbroker.store.partitions import Partition, ensure_partitions, list_partitions

INSERT_EXECUTION = """
insert into pgbroker.execution
    (job_id, lease_token, tenant_id, queue_id, job_type_id, leased_at, finished_at, attempt, outcome)
values (1, %s, 1, 1, 1, %s, %s, 1, 1)
"""
INSERT_ARCHIVED = """
insert into pgbroker.archived_job (
    id, tenant_id, queue_id, job_type_id, created_at, available_at, finished_at, state, priority, attempt,
    max_attempts, deaths, interruptions, version, arguments
) values (%s, 1, 1, 1, %s, %s, %s, 10, 0, 1, 3, 0, 0, 1, '{}')
"""


@pytest.fixture
def gateway(broker_database: None) -> Iterator[Gateway]:
    opened = open_gateway("default", "test")
    yield opened
    opened.connection.close()


@pytest.fixture
def bare(gateway: Gateway) -> Iterator[Gateway]:
    """A gateway in a transaction that is rolled back at the end, in which only the default partitions exist."""
    with gateway.connection.transaction(force_rollback=True):
        drop_partitions(gateway)
        yield gateway


def drop_partitions(gateway: Gateway) -> None:
    for partition in list_partitions(gateway):
        if not partition.is_default:
            gateway.connection.execute(f"drop table pgbroker.{partition.name}")  # type: ignore[call-overload]


def set_clock(gateway: Gateway, instant: str) -> None:
    """Stop the database's clock."""
    gateway.connection.execute(
        "create or replace function pgbroker.clock() returns timestamptz"
        f" language sql stable as $$ select timestamptz '{instant}' $$"  # type: ignore[arg-type]
    )


def put_execution(gateway: Gateway, finished_at: str, token: int = 1) -> None:
    gateway.connection.execute(INSERT_EXECUTION, [token, finished_at, finished_at])


def home_of(gateway: Gateway, table: str) -> list[str]:
    """The partition of each row."""
    rows = gateway.connection.execute(f"select tableoid::regclass::text from pgbroker.{table} order by finished_at")  # type: ignore[arg-type]
    return [name.removeprefix("pgbroker.") for (name,) in rows]


def names(gateway: Gateway, parent: str = "execution") -> list[str]:
    return [each.name for each in list_partitions(gateway) if each.parent == parent and not each.is_default]


def spans(gateway: Gateway, parent: str) -> list[tuple[datetime | None, datetime | None]]:
    return [
        (each.lower, each.upper) for each in list_partitions(gateway) if each.parent == parent and not each.is_default
    ]


@pytest.mark.parametrize(
    ("period", "now", "expected"),
    [
        ("week", "2026-12-02 12:00+00", ["2026w49", "2026w50"]),
        ("week", "2027-01-01 00:00+00", ["2026w53", "2027w01"]),
        ("week", "2026-12-06 23:59:59+00", ["2026w49", "2026w50"]),
        ("week", "2026-12-07 00:00+00", ["2026w50", "2026w51"]),
        ("month", "2026-12-10 12:00+00", ["202612"]),
        ("month", "2026-12-26 12:00+00", ["202612", "202701"]),
        ("day", "2028-02-27 12:00+00", ["20280227", "20280228", "20280229", "20280301", "20280302", "20280303",
                                        "20280304", "20280305"]),
    ],
)  # fmt: skip
def test_the_current_period_and_seven_days_ahead_have_partitions_named_after_them(
    bare: Gateway, period: str, now: str, expected: list[str]
) -> None:
    set_clock(bare, now)

    created = ensure_partitions(bare, period)

    assert names(bare) == [f"execution_{each}" for each in expected]
    assert names(bare, "archived_job_finished") == [f"archived_job_finished_{each}" for each in expected]
    assert sorted(created) == sorted(names(bare) + names(bare, "archived_job_finished"))


def test_a_second_call_creates_nothing(bare: Gateway) -> None:
    ensure_partitions(bare, "week")

    assert ensure_partitions(bare, "week") == []


def test_bounds_are_utc_and_weeks_start_on_monday_whatever_the_session_says(bare: Gateway) -> None:
    set_clock(bare, "2026-12-02 12:00+00")
    bare.connection.execute("set local timezone = 'Asia/Tokyo'")
    bare.connection.execute("set local datestyle = 'SQL, DMY'")

    assert "execution_2026w49" in ensure_partitions(bare, "week")

    bare.connection.execute("set local datestyle = 'ISO'")
    assert spans(bare, "execution")[0] == (datetime(2026, 11, 30, tzinfo=UTC), datetime(2026, 12, 7, tzinfo=UTC))


def test_bounds_do_not_move_with_daylight_saving(bare: Gateway) -> None:
    set_clock(bare, "2026-10-24 12:00+00")
    bare.connection.execute("set local timezone = 'Europe/Berlin'")

    ensure_partitions(bare, "day", days_ahead=3)

    # two instants in the hour that comes twice are never equal for Python unless both are in UTC
    assert [lower for lower, _ in spans(bare, "execution")] == [
        datetime(2026, 10, day, tzinfo=UTC) for day in range(24, 28)
    ]


@pytest.mark.parametrize(
    ("first", "then"), [("day", "week"), ("week", "day"), ("week", "month"), ("month", "day"), ("month", "week")]
)
def test_after_a_change_of_period_only_the_uncovered_time_is_added(bare: Gateway, first: str, then: str) -> None:
    set_clock(bare, "2026-11-27 12:00+00")
    ensure_partitions(bare, first)
    before = set(names(bare))

    ensure_partitions(bare, then, days_ahead=40)

    assert before < set(names(bare))
    for parent in ("execution", "archived_job_finished"):
        covered = spans(bare, parent)
        assert all(upper == following for (_, upper), (following, _) in pairwise(covered))
        assert covered[0][0] <= datetime(2026, 11, 27, tzinfo=UTC)
        assert covered[-1][1] > datetime(2027, 1, 6, tzinfo=UTC)


def test_rows_that_landed_in_the_default_partition_move_into_the_new_one(bare: Gateway) -> None:
    put_execution(bare, "2026-12-02 12:00+00")
    bare.connection.execute(INSERT_ARCHIVED, [7, *["2026-12-06 23:59:59.999999+00"] * 3])
    assert (home_of(bare, "execution"), home_of(bare, "archived_job")) == (
        ["execution_default"],
        ["archived_job_finished_default"],
    )
    set_clock(bare, "2026-12-02 12:00:01+00")

    ensure_partitions(bare, "week")

    assert home_of(bare, "execution") == ["execution_2026w49"]
    assert home_of(bare, "archived_job") == ["archived_job_finished_2026w49"]


def test_rows_of_the_time_when_no_duty_ran_get_partitions_later(bare: Gateway) -> None:
    for token, day in enumerate(["2026-10-15", "2026-11-18", "2026-11-19"]):
        put_execution(bare, f"{day} 12:00+00", token)
    set_clock(bare, "2026-12-02 12:00+00")

    created = ensure_partitions(bare, "week")

    assert home_of(bare, "execution") == ["execution_2026w42", "execution_2026w47", "execution_2026w47"]
    assert "archived_job_finished_2026w42" not in created


def test_rows_with_far_off_dates_stay_in_the_default_partition_and_harm_nothing(bare: Gateway) -> None:
    set_clock(bare, "2026-12-02 12:00+00")
    for token, instant in enumerate(
        ["1970-01-01 00:00+00", "2262-04-11 00:00+00", "200000-01-01 00:00+00", "infinity"]
    ):
        put_execution(bare, instant, token)

    assert ensure_partitions(bare, "week") != []

    assert home_of(bare, "execution") == ["execution_default"] * 4


@pytest.mark.parametrize("now", ["9999-12-30 12:00+00", "200000-02-29 12:00+00"])
def test_a_clock_beyond_the_dates_of_python_still_gets_partitions(bare: Gateway, now: str) -> None:
    set_clock(bare, now)

    assert len(ensure_partitions(bare, "week")) == 4
    assert ensure_partitions(bare, "week") == []
    assert list_partitions(bare)[-1].upper is None


def test_too_many_rows_to_move_at_once_stay_and_only_their_period_goes_without_a_partition(bare: Gateway) -> None:
    for token in range(4):
        put_execution(bare, "2026-12-02 11:00+00", token)
    set_clock(bare, "2026-12-02 12:00+00")

    created = ensure_partitions(bare, "week", move_limit=3)

    assert created == ["archived_job_finished_2026w49", "archived_job_finished_2026w50", "execution_2026w50"]
    assert home_of(bare, "execution") == ["execution_default"] * 4
    assert ensure_partitions(bare, "week", move_limit=4) == ["execution_2026w49"]


def test_a_detached_partition_keeps_its_name_and_the_new_one_gets_a_number(bare: Gateway) -> None:
    set_clock(bare, "2026-12-02 12:00+00")
    ensure_partitions(bare, "week")
    bare.connection.execute("alter table pgbroker.execution detach partition pgbroker.execution_2026w49")

    assert ensure_partitions(bare, "week") == ["execution_2026w49_2"]


def test_the_partitions_are_listed_with_their_bounds_after_the_default_ones(bare: Gateway) -> None:
    set_clock(bare, "2026-12-10 12:00+00")
    ensure_partitions(bare, "month")

    december, january = datetime(2026, 12, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)
    assert list_partitions(bare) == [
        Partition("archived_job_finished", "archived_job_finished_default", None, None, True),
        Partition("archived_job_finished", "archived_job_finished_202612", december, january, False),
        Partition("execution", "execution_default", None, None, True),
        Partition("execution", "execution_202612", december, january, False),
    ]


def test_a_new_partition_has_the_keys_of_its_parent(bare: Gateway) -> None:
    set_clock(bare, "2026-12-02 12:00+00")
    ensure_partitions(bare, "week")
    put_execution(bare, "2026-12-02 12:00+00")

    with pytest.raises(psycopg.errors.UniqueViolation):
        put_execution(bare, "2026-12-02 12:00+00")


def test_a_reader_of_the_history_makes_it_give_up_soon_and_leaves_no_table_behind(gateway: Gateway) -> None:
    with open_gateway("default", "reader").connection as reader:
        reader.execute("begin")
        reader.execute("select count(*) from pgbroker.execution")
        before = list_partitions(gateway)
        started = time.monotonic()

        with pytest.raises(psycopg.errors.LockNotAvailable):
            ensure_partitions(gateway, "week", days_ahead=60)

        assert time.monotonic() - started < 10
        made = [each.name for each in set(list_partitions(gateway)) - set(before) if each.parent == "execution"]
        assert made == []
        assert gateway.connection.execute("select to_regclass('pgbroker.execution_2027w01')").fetchone() == (None,)
    drop_partitions(gateway)
    ensure_partitions(gateway, "week")


def test_several_processes_at_once_make_each_partition_once(gateway: Gateway) -> None:
    wanted = ensure_names(gateway)
    drop_partitions(gateway)
    start = threading.Barrier(4)

    def build() -> list[str]:
        mine = open_gateway("default", "builder")
        try:
            start.wait(timeout=30)
            return ensure_partitions(mine, "week")
        finally:
            mine.connection.close()

    with ThreadPoolExecutor(4) as pool:
        created = [name for future in [pool.submit(build) for _ in range(4)] for name in future.result(timeout=60)]

    assert sorted(created) == wanted
    assert sorted(ensure_names(gateway)) == wanted


def ensure_names(gateway: Gateway) -> list[str]:
    ensure_partitions(gateway, "week")
    return sorted(each.name for each in list_partitions(gateway) if not each.is_default)


def test_rows_that_arrive_during_the_building_are_not_lost(gateway: Gateway) -> None:
    """Writers keep inserting while the partitions they write to are dropped from, and attached to, their parent."""
    drop_partitions(gateway)
    stop = threading.Event()

    def write(worker: int) -> int:
        mine = open_gateway("default", "writer")
        try:
            written = 0
            while not stop.is_set():
                written += 1
                mine.connection.execute(
                    "insert into pgbroker.execution (job_id, lease_token, tenant_id, queue_id, job_type_id, leased_at,"
                    " finished_at, attempt, outcome) values (%s, %s, 1, 1, 1, now(), now(), 1, 1)",
                    [worker, written],
                )
            return written
        finally:
            mine.connection.close()

    with ThreadPoolExecutor(2) as pool:
        writers = [pool.submit(write, worker) for worker in range(2)]
        try:
            wait_for_rows(gateway, 50)
            created = ensure_partitions(gateway, "week")
            wait_for_rows(gateway, 100)
        finally:
            stop.set()
        written = sum(writer.result(timeout=30) for writer in writers)

    assert len(created) == 4
    assert gateway.connection.execute("select count(*) from pgbroker.execution").fetchone() == (written,)
    assert gateway.connection.execute("select count(*) from pgbroker.execution_default").fetchone() == (0,)


def wait_for_rows(gateway: Gateway, count: int) -> None:
    deadline = time.monotonic() + 20
    while gateway.connection.execute("select count(*) >= %s from pgbroker.execution", [count]).fetchone() != (True,):
        assert time.monotonic() < deadline, "the writers write nothing"
