"""Transactional jobs happen exactly once: workers killed at each step, and a commit whose answer nobody hears."""

import signal

import pytest

from tests.drills import crash_points, jobs
from tests.drills.proxy import Proxy
from tests.maintenance.waiting import wait_until

JOBS = 300

IN_COMMIT = """
create or replace function wait_in_commit() returns trigger language plpgsql as $$
begin
    if exists (select from gate where name = 'slow commits') then
        perform pg_sleep(0.5);
    end if;
    return null;
end $$;
create constraint trigger effect_waits after insert on effect deferrable initially deferred
for each row when (new.what = 'done') execute function wait_in_commit();
"""

COMMITTING = """
select pid from pg_stat_activity
where datname = current_database() and query ilike 'commit%%' and state = 'active' and wait_event = 'PgSleep'
"""


def check_each_once(crew, handles):
    """Each payment and each job it enqueued exactly once, and nothing left."""
    ids = [handle.id for handle in handles]
    paid = "select count(*), count(distinct job_id) from effect where what = %s"
    with crew.connect() as connection:
        for what in ("paid", "done"):
            assert connection.execute(paid, [what]).fetchone() == (len(ids), len(ids))
        assert connection.execute("select count(*) from effect where what = 'notified'").fetchone()[0] >= len(ids)
        notices = "select count(*) from pgbroker.archived_job join pgbroker.job_type on job_type.id = job_type_id "
        assert connection.execute(f"{notices} where name = 'drill.notify'").fetchone()[0] == len(ids)
        completed = "select count(*) from pgbroker.execution where outcome = 1 and job_id = any(%s)"
        assert connection.execute(completed, [ids]).fetchone()[0] == len(ids)


@pytest.mark.parametrize("point", crash_points.ATOMIC_POINTS)
def test_a_worker_killed_at_any_step_pays_exactly_once(crew, point):
    doomed = crew.start_worker("--concurrency", "2", "--no-maintenance", crash=f"{point}:3")
    wait_until(lambda: doomed.says("worker.started"), "it is ready", 30)
    handles = [jobs.pay.enqueue() for _ in range(JOBS)]
    wait_until(lambda: not doomed.lives, "it has died", 30)
    assert doomed.wait() == -signal.SIGKILL

    crew.start_worker("--concurrency", "4").wait_until_ready()
    crew.job_ids += [handle.id for handle in handles]
    crew.finish()
    check_each_once(crew, handles)


def test_a_worker_killed_while_the_server_commits_pays_exactly_once(crew):
    crew.run(IN_COMMIT)
    crew.run("insert into gate values ('slow commits')")
    doomed = crew.start_worker("--concurrency", "4", "--no-maintenance")
    wait_until(lambda: doomed.says("worker.started"), "it is ready", 30)
    handles = [jobs.pay.enqueue() for _ in range(20)]
    wait_until(lambda: crew.one(COMMITTING), "the server commits", 30)
    doomed.send(signal.SIGKILL)
    assert doomed.wait(30) == -signal.SIGKILL

    crew.run("delete from gate")
    crew.start_worker("--concurrency", "4").wait_until_ready()
    crew.job_ids += [handle.id for handle in handles]
    crew.finish()
    check_each_once(crew, handles)


@pytest.fixture
def proxy(crew):
    """A way to the database that can be cut."""
    made = Proxy(crew.database)
    yield made
    made.close()


def test_connections_cut_while_the_server_commits_leave_the_outcome_unknown_and_pay_exactly_once(crew, proxy):
    """The commit goes on in the server; the worker hears nothing, judges it failed, and the fence refuses that."""
    crew.run(IN_COMMIT)
    crew.run("insert into gate values ('slow commits')")
    worker = crew.start_worker("--concurrency", "4", database=proxy.database)
    wait_until(lambda: worker.says("worker.started"), "it is ready", 30)
    handles = [jobs.pay.enqueue() for _ in range(20)]
    wait_until(lambda: crew.one(COMMITTING), "the server commits", 30)
    proxy.cut()
    wait_until(lambda: worker.says("job.failed"), "a handler heard nothing of its commit", 30)
    assert worker.lives

    crew.run("delete from gate")
    crew.job_ids += [handle.id for handle in handles]
    crew.finish()
    check_each_once(crew, handles)
