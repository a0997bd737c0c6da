"""B092: nobody has made partitions for more than a year; jobs finish all the same, and the duty mends it later."""

from django_pgbroker.domain.states import JobState
from django_pgbroker.maintenance.partitioner import Partitioner
from django_pgbroker.models import ArchivedJob, Execution

IN_DEFAULT = (
    "select (select count(*) from pgbroker.archived_job_finished_default)"
    " + (select count(*) from pgbroker.execution_default)"
)


def test_b092_jobs_finish_without_a_partition_of_their_time_and_are_moved_into_one_when_it_is_made(
    declare, run_until_empty, rows, gateway, move_clock
):
    partitions = "select array_agg(relid::text order by 1) from pg_partition_tree('pgbroker.archived_job_finished')"
    noop = declare("tests.noop")(lambda: 1)
    move_clock("13 months")
    handles = [noop.enqueue() for _ in range(10)]
    assert run_until_empty() == 0
    assert {handle.status() for handle in handles} == {JobState.COMPLETED}
    assert rows.one(IN_DEFAULT) == 20
    before = rows.one(partitions)

    Partitioner().tick(gateway, 100)
    after = rows.one(partitions)
    try:
        assert set(after) > set(before)
        assert rows.one(IN_DEFAULT) == 0
        assert (ArchivedJob.objects.count(), Execution.objects.count()) == (10, 10)
        assert [handle.result() for handle in handles] == [1] * 10
        more = noop.enqueue()
        assert run_until_empty() == 0
        assert more.status() is JobState.COMPLETED
        assert rows.one(IN_DEFAULT) == 0
    finally:
        made = set(rows.one("select array_agg(relid::text) from pg_partition_tree('pgbroker.execution')")) | set(after)
        old = made & set(before)
        for name in sorted(made - old):
            if "2027" in name or "2028" in name:
                rows.run(f"drop table {name}")
