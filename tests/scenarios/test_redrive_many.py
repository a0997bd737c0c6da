"""Very many dead letters are redriven at a pace while workers run them, in memory that does not grow with them."""

from pathlib import Path

import pytest

from django_pgbroker import JobHandle
from django_pgbroker.domain.job_filter import JobFilter
from django_pgbroker.domain.states import JobState
from django_pgbroker.models import AuditEntry
from django_pgbroker.operations.job_verbs import redrive_jobs
from tests.maintenance.waiting import wait_until
from tests.operations.verbs.crowd import add_dead_letters

#: What the memory of a worker may grow by between a tenth of the work and its end.
MOST_GROWTH_MB = 24


def resident_mb(pid):
    """The memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def ended(rows, state):
    return rows.one("select count(*) from pgbroker.archived_job where state = %s", state)


@pytest.mark.parametrize(
    ("count", "per_second"), [(20_000, 5_000), pytest.param(1_000_000, 10_000, marks=pytest.mark.drill)]
)
def test_many_dead_letters_are_redriven_at_a_pace_with_flat_memory(start, rows, count, per_second):
    add_dead_letters(rows, count, queue="mail", job_type="scenario.mended")
    report = redrive_jobs(JobFilter(queue="mail"), per_second=per_second, actor="ada", reason="mended")
    bulk = JobHandle(report.background_job_id)
    mover = start("--queues", "default", "--concurrency", "1", "--no-maintenance")
    runner = start("--queues", "mail", "--concurrency", "4")
    limit = 60 + 4 * count / per_second

    wait_until(lambda: ended(rows, JobState.DEAD) <= count * 0.9, "a tenth is redriven", seconds=limit)
    early = {process: resident_mb(process.pid) for process in (mover, runner)}
    wait_until(lambda: bulk.status() is JobState.COMPLETED, "all are redriven", seconds=limit)
    late = resident_mb(mover.pid)
    wait_until(lambda: ended(rows, JobState.COMPLETED) == count + 1, "all ran", seconds=limit)

    assert bulk.result() == {"changed": count, "refused": 0}
    assert sum(AuditEntry.objects.values_list("count", flat=True)) == count
    assert late - early[mover] < MOST_GROWTH_MB
    assert resident_mb(runner.pid) - early[runner] < MOST_GROWTH_MB
    first, last = rows.gateway.connection.execute(
        "select extract(epoch from min(occurred_at)), extract(epoch from max(occurred_at)) from pgbroker.audit_entry"
    ).fetchone()
    assert count / (last - first) < per_second * 1.1, "it keeps its pace"
