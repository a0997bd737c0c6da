"""A history of years, built fast: partitions filled before they have a key, and then attached."""

from datetime import UTC, datetime, timedelta

from django_pgbroker.domain.states import JobState, Outcome
from tests.maintenance.rows import Rows

_WEEKS = 13

#: Far enough back that no duty and no other test has a partition there.
_WEEKS_AGO = 60

#: The two tables: the columns of theirs that matter, and what they hold. ``n`` numbers the rows of one partition.
_ROWS = {
    "archived_job_finished": (
        "insert into pgbroker.{name} (id, tenant_id, queue_id, job_type_id, created_at, available_at, finished_at,"
        " state, priority, attempt, max_attempts, deaths, interruptions, version, arguments)"
        f" select {{first}} + n, 1, 1 + mod(n, 3), 1, at, at, at, case when mod(n, 100) = 0 then {JobState.CANCELLED:d}"
        f" else {JobState.COMPLETED:d} end, 0, 1, 3, 0, 0, 1, '{{{{\"order_id\": 7}}}}'"
    ),
    "execution": (
        "insert into pgbroker.{name} (job_id, lease_token, tenant_id, queue_id, job_type_id, worker_id, leased_at,"
        " finished_at, run_microseconds, attempt, outcome)"
        f" select {{first}} + n, {{first}} + n, 1, 1 + mod(n, 3), 1, 1, at, at, 1500, 1, {Outcome.COMPLETED:d}"
    ),
}
_KEYS = {"archived_job_finished": "id, state, finished_at", "execution": "job_id, lease_token, finished_at"}


class Years:
    """So many archived jobs and executions, spread over thirteen weeks, and one dead letter in a thousand.

    Their ids are negative: whatever is enqueued is younger.
    """

    def __init__(self, rows: Rows, count: int) -> None:
        self._rows = rows
        self.count = count
        today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        self._begin = today - timedelta(days=today.weekday(), weeks=_WEEKS_AGO)
        self.remove()
        for week in range(_WEEKS):
            for parent in _ROWS:
                self._add_partition(parent, week)
        rows.run(
            "insert into pgbroker.archived_job (id, tenant_id, queue_id, job_type_id, created_at, available_at,"
            " finished_at, state, priority, attempt, max_attempts, deaths, interruptions, version, arguments)"
            " select -n, 1, 1, 1, now(), now(), now(), %s, 0, 3, 3, 0, 0, 1, '{}' from generate_series(1, %s) as n",
            int(JobState.DEAD), count // 1000,
        )  # fmt: skip

    @property
    def oldest_id(self) -> int:
        """The first job of all."""
        return -self.count - self.count // 1000

    def _add_partition(self, parent: str, week: int) -> None:
        name = _name(parent, week)
        lower, upper = (self._begin + timedelta(weeks=each) for each in (week, week + 1))
        size = self.count // _WEEKS + 1
        self._rows.run(
            f"create table pgbroker.{name} (like pgbroker.{parent} including defaults including constraints)"
            " with (autovacuum_enabled = off)"
        )
        self._rows.run(
            _ROWS[parent].format(name=name, first=self.oldest_id + week * size)
            + f" from generate_series(0, {size - 1}) as n"
            f" cross join lateral (select timestamptz '{lower}' + n * interval '7 days' / {size}) as moment (at)"
        )
        self._rows.run(f"alter table pgbroker.{name} add primary key ({_KEYS[parent]})")
        self._rows.run(f"alter table pgbroker.{name} add check (finished_at >= '{lower}' and finished_at < '{upper}')")
        self._rows.run(
            f"alter table pgbroker.{parent} attach partition pgbroker.{name} for values from ('{lower}') to ('{upper}')"
        )

    def remove(self) -> None:
        """Drop the partitions."""
        for week in range(_WEEKS):
            for parent in _ROWS:
                self._rows.run(f"drop table if exists pgbroker.{_name(parent, week)}")
        self._rows.run("delete from pgbroker.archived_job_dead where id < 0")


def _name(parent: str, week: int) -> str:
    return f"{parent}_years_{week}"
