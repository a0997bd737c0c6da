"""B049: a handler that raises what ends processes, threads or generators has failed, and nothing more."""

from django_pgbroker.domain.states import JobState, Outcome
from django_pgbroker.models import ArchivedJob, Execution
from tests.cases import jobs
from tests.maintenance.waiting import wait_until
from tests.scenarios import jobs as scenario


def test_b049_whatever_ends_a_process_is_a_failure_with_its_type_and_its_retries(start_process, story, rows):
    worker = start_process("--concurrency", "2", "--settings", "tests.cases.settings")
    handles = {how: story.enqueue(jobs.leave, how=how) for how in jobs.EXITS}
    wait_until(lambda: all(handle.status().is_finished for handle in handles.values()), "all are dead letters")
    last = story.enqueue(scenario.quick)
    wait_until(lambda: last.status() is JobState.COMPLETED, "the worker goes on")

    for how, handle in handles.items():
        dead = ArchivedJob.objects.get(pk=handle.id)
        error = type(jobs.EXITS[how])
        assert (dead.state, dead.attempt, dead.deaths) == (JobState.DEAD, 2, 0), how
        assert dead.error_class == f"{error.__module__}.{error.__qualname__}"
        found = Execution.objects.filter(job_id=handle.id).order_by("attempt").values_list("attempt", "outcome")
        assert list(found) == [(1, Outcome.FAILED), (2, Outcome.FAILED)], how
    assert rows.one("select array_agg(distinct process_id) from effect") == [worker.pid]
    assert worker.lives
