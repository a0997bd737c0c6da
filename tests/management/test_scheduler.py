"""``pgbroker_scheduler`` as a person starts it."""

from django.core.management import call_command

from django_pgbroker.domain.states import JobState
from tests.maintenance.waiting import wait_until
from tests.management.processes import manage


def test_once_promotes_and_resumes_what_is_due_and_says_so(rows, capsys):
    job = rows.job(rows.queue(), JobState.SCHEDULED, due_in=-1)
    rows.run("update pgbroker.queue set paused_at = now() - interval '2 s', resume_at = now() - interval '1 s'")
    call_command("pgbroker_scheduler", "--once")
    assert capsys.readouterr().out == "promoter: 1 moved\nresumer: 1 moved\n"
    assert rows.state_of(job) is JobState.PENDING
    assert rows.one("select paused_at from pgbroker.queue") is None


def test_it_promotes_until_it_is_stopped_with_status_zero(rows):
    job = rows.job(rows.queue(), JobState.SCHEDULED, due_in=-1)
    with manage("pgbroker_scheduler") as process:
        wait_until(lambda: rows.state_of(job) is JobState.PENDING, "the job is promoted", seconds=30)
        process.terminate()
        output, _ = process.communicate(timeout=20)
    assert process.returncode == 0, output
    assert output.splitlines()[-1] == "pgbroker scheduler stopped."
