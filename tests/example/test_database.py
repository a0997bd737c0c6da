"""A database that the demo cannot use, or that is stopped under it: one line, and the end."""

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.shell.clones import Clone

from .demo_process import Demo

RUNS_ON = "Ctrl-C stops everything"
#: The demo looks four times a second; the rest is for its children to end.
SECONDS_TO_END = 10

type StartDemo = Callable[..., Demo]


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Clone]:
    """A running server that no other test uses."""
    clone = Clone(tmp_path / "a clone")
    clone.attach()
    yield clone
    clone.remove()


def url_of(clone: Clone) -> str:
    return f"postgres://postgres@/pgbroker?host={clone.place.sockets}"


def ends_within_seconds(demo: Demo) -> float:
    started = time.monotonic()
    demo.process.wait(60)
    return time.monotonic() - started


def test_a_database_that_is_stopped_ends_the_demo_within_seconds_with_one_line(
    demo: StartDemo, folder: Path, own_server: Clone
) -> None:
    running = demo(str(folder), DATABASE_URL=url_of(own_server))
    running.wait_for(RUNS_ON)
    before = len(running.lines())

    own_server.command("stop")

    assert ends_within_seconds(running) < SECONDS_TO_END
    assert running.process.returncode == 1
    [line] = running.lines()[before:]
    assert "the database was stopped" in line


def test_a_database_that_is_stopped_while_files_are_fed_ends_the_demo_with_the_same_line(
    demo: StartDemo, own_server: Clone
) -> None:
    running = demo("--once", DATABASE_URL=url_of(own_server))
    running.wait_for(" jobs: ")

    own_server.command("stop")

    assert ends_within_seconds(running) < SECONDS_TO_END
    assert running.process.returncode == 1
    assert "the database was stopped" in running.lines()[-1]
    assert "Traceback" not in running.output.read_text()


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("postgres://postgres@127.0.0.1:1/pgbroker", "Connection refused"),
        ("postgres://nobody_of_this_name@{server}", 'role "nobody_of_this_name" does not exist'),
        ("postgres://postgres@{server_without_name}", 'database "missing" does not exist'),
        ("user@host/database", "does not begin with a scheme"),
        ("sqlite:///jobs.db", "its scheme is not one of"),
        ("postgres://user@host:port/database", "cannot be read"),
        ("postgres://user@host", "names no database"),
    ],
)
def test_a_wrong_database_url_is_one_line_that_names_it_and_the_next_step(
    demo: StartDemo, environment: dict[str, str], url: str, reason: str
) -> None:
    place = environment["DATABASE_URL"].partition("@")[2]
    missing = f"/missing{place[place.index('?') :]}"

    refused = demo("--once", DATABASE_URL=url.format(server=place, server_without_name=missing))

    assert refused.process.wait(60) == 1
    line = refused.lines()[-1]
    assert "DATABASE_URL" in line
    assert reason in line
    assert "Next: " in line
    assert "Traceback" not in refused.output.read_text()


@pytest.mark.parametrize("port", ["abc", "80000", "-1", "8_000", "²"])
def test_a_port_that_is_none_is_one_line_that_names_it(demo: StartDemo, port: str) -> None:
    refused = demo("--once", PORT=port)

    assert refused.process.wait(60) == 1
    [line] = refused.lines()
    assert f"PORT is {port!r}" in line
    assert "Next: " in line


def test_ctrl_c_while_the_demo_is_still_importing_shows_no_traceback(demo: StartDemo, tmp_path: Path) -> None:
    # Python takes modules of this folder first: the import of Django's settings stops here and says so
    marker = tmp_path / "importing"
    (tmp_path / "environ.py").write_text(f"open({str(marker)!r}, 'w').close()\nimport time\ntime.sleep(60)\n")
    running = demo("--once", PYTHONPATH=str(tmp_path))
    deadline = time.monotonic() + 30
    while not marker.exists():
        assert time.monotonic() < deadline, running.lines()
        time.sleep(0.01)

    assert running.end(signal.SIGINT) == 130

    assert running.lines() == []
