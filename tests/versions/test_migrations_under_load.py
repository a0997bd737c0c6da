"""``migrate`` while producers and workers are at work, as an owner that is no superuser, and backwards in the end."""

from tests.maintenance.waiting import wait_until


def run_migrates_at_once(crew, count):
    for migrate in [crew.start("migrate", "--verbosity", "1") for _ in range(count)]:
        assert migrate.wait(60) == 0, migrate.output


def test_workers_do_not_notice_two_migrates_at_once_and_the_owner_needs_no_privilege(owner_crew):
    run_migrates_at_once(owner_crew, 1)
    workers = [owner_crew.start_worker("--concurrency", "2") for _ in range(2)]
    for worker in workers:
        worker.wait_until_ready()
    producer = owner_crew.start("drill_produce", "--count", "1500", "--milliseconds", "1")
    wait_until(lambda: owner_crew.one("select count(*) from pgbroker.archived_job") > 20, "they work")

    run_migrates_at_once(owner_crew, 2)

    assert producer.lives, "the migrates ran under load"
    assert producer.wait(60) == 0, producer.output
    owner_crew.job_ids += [int(line.split()[1]) for line in producer.lines if line.startswith("job ")]
    assert len(owner_crew.job_ids) == 1500
    owner_crew.finish()
    owner_crew.check()
    assert owner_crew.one("select max(attempt) from pgbroker.archived_job") == 1
    for worker in workers:
        assert not worker.says("ERROR"), worker.output
        assert not worker.says("database_lost"), worker.output

    backwards = owner_crew.start("migrate", "django_pgbroker", "zero")
    assert backwards.wait(60) == 0, backwards.output
    assert owner_crew.one("select to_regnamespace('pgbroker')::text") is None
