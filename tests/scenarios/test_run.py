"""``pgbroker_run`` as a person at a terminal uses it: with a debugger."""

import json
import os
import subprocess
import sys

from django_pgbroker.domain.states import JobState
from tests.scenarios import jobs
from tests.scenarios.processes import PROJECT, QUICK, database_of_this_run

SECONDS = 60


def run(job_id, keys):
    """Run the command with these lines typed, and return its exit status and what it printed."""
    environment = {key: value for key, value in os.environ.items() if key not in ("DATABASE_URL", "PYTHONBREAKPOINT")}
    done = subprocess.run(
        [sys.executable, "manage.py", "pgbroker_run", str(job_id)],
        cwd=PROJECT,
        env={
            **environment,
            "DJANGO_SETTINGS_MODULE": "tests.scenarios.settings",
            "SCENARIO_DATABASE": json.dumps(database_of_this_run()),
            "SCENARIO_PGBROKER": json.dumps(QUICK),
        },
        input=keys,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return done.returncode, done.stdout


def test_a_breakpoint_stops_in_the_handler_and_goes_on_for_longer_than_the_lease_and_the_time_out(story):
    handle = story.enqueue(jobs.debugged)
    status, said = run(handle.id, "import time; time.sleep(3)\nprint('word is', word)\ncontinue\n")
    assert status == 0, said
    assert "word is looked at" in said
    assert "(Pdb)" in said
    assert 'Result: "looked at"' in said
    assert handle.status() is JobState.COMPLETED
    assert story.count("done") == 1


def test_leaving_the_debugger_fails_the_attempt(story):
    handle = story.enqueue(jobs.debugged)
    status, said = run(handle.id, "quit\n")
    assert status == 1, said
    assert "BdbQuit" in said
    assert handle.status() is JobState.PENDING
    assert not story.count("done")
