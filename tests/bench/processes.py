"""``pgbroker_bench`` as a person starts it, and what it leaves behind."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from django.db import connection

from tests.maintenance.waiting import wait_until

PROJECT = Path(__file__).parent.parent.parent


def start_bench(*arguments: str) -> subprocess.Popen[str]:
    """A bench in a session of its own."""
    return subprocess.Popen(
        [sys.executable, "manage.py", "pgbroker_bench", *arguments],
        cwd=PROJECT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def run_bench(*arguments: str) -> dict[str, Any]:
    """The figures of a bench, after which nothing of it is left."""
    process = start_bench(*arguments, "--json")
    output, errors = process.communicate(timeout=200)
    assert process.returncode == 0, errors
    assert len(errors.splitlines()) >= 1, "progress"
    check_nothing_is_left(process.pid)
    return dict(json.loads(output))


def check_nothing_is_left(process_id: int) -> None:
    """Neither a database nor a process of the bench that was this process."""
    with connection.cursor() as cursor:
        cursor.execute("select datname from pg_database where datname = %s", [scratch_name(process_id)])
        assert cursor.fetchall() == []
    # the resource tracker of multiprocessing ends a moment after the process that it served
    wait_until(lambda: not processes_of_session(process_id), "its processes have ended", seconds=5)


def scratch_name(process_id: int) -> str:
    return f"pgbroker_bench_{process_id}"


def count_sessions(process_id: int, role: str) -> int:
    """Sessions of the broker in the scratch database of this bench, such as ``worker``."""
    with connection.cursor() as cursor:
        cursor.execute(
            "select count(*) from pg_stat_activity where datname = %s and application_name like %s",
            [scratch_name(process_id), f"pgbroker {role} %"],
        )
        return int(cursor.fetchone()[0])


def processes_of_session(session_id: int) -> list[int]:
    """Processes that work, by /proc; one that has ended and waits for nobody does not count."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session = stat.read_text(errors="replace").rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(session) == session_id and state != "Z":
            found.append(int(stat.parent.name))
    return sorted(found)
