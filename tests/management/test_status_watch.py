"""``pgbroker_status --watch`` under a real pseudo-terminal; and what its board is made of."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from io import StringIO

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connections
from django.utils import timezone
from psycopg import sql
from rich.console import Console

from django_pgbroker.management.glyphs import draw_bar, draw_curve
from django_pgbroker.management.status_board import StatusBoard, share_lines
from django_pgbroker.models import Queue, StatMinute
from django_pgbroker.operations.board import read_board
from tests import factories
from tests.management.commands import HOSTILE, Terminal, has_control_characters
from tests.management.processes import PROJECT, database_url

ENTER_SCREEN, LEAVE_SCREEN, SHOW_CURSOR = "\x1b[?1049h", "\x1b[?1049l", "\x1b[?25h"


class Screen:
    """A terminal of 80 by 24 with a process in it."""

    def __init__(self, master: int, process: subprocess.Popen[bytes]) -> None:
        self.master = master
        self.process = process
        self.seen = ""

    def wait_for(self, text: str, since: int = 0, seconds: float = 30) -> int:
        """Read on until the text is there; where it ends."""
        until = time.monotonic() + seconds
        while (found := self.plain(since).find(text)) < 0:
            assert time.monotonic() < until, f"{text!r} never came: {self.seen[-3000:]!r}"
            assert self.read(), f"the process ended without {text!r}: {self.seen[-3000:]!r}"
        return len(self.seen) if found >= 0 else 0

    def read(self) -> bool:
        """Whether the terminal is still open."""
        ready, _, _ = select.select([self.master], [], [], 0.2)
        if not ready:
            return True
        try:
            data = os.read(self.master, 65_536)
        except OSError:
            return False
        self.seen += data.decode(errors="replace")
        return bool(data)

    def plain(self, since: int = 0) -> str:
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.seen[since:])

    def end(self, seconds: float = 15) -> int:
        """Read to the end; the exit status."""
        until = time.monotonic() + seconds
        while self.read():
            if self.process.poll() is not None and time.monotonic() > until:
                break
            assert time.monotonic() < until, "it does not end"
        return self.process.wait(seconds)


@contextmanager
def watching(*arguments: str, **environment: str) -> Iterator[Screen]:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "manage.py", "pgbroker_status", "--watch", "0.3", *arguments],
        cwd=PROJECT,
        env={**os.environ, "DATABASE_URL": database_url(), "TERM": "xterm-256color", **environment},
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    try:
        yield Screen(master, process)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(master)


@pytest.fixture
def broker(broker_database: None) -> None:
    connections["default"].ensure_connection()
    factories.QueueFactory(name="mail", sampled_at=timezone.now(), pending_count=1234)


def test_it_draws_within_the_terminal_again_and_again_and_gives_it_back_on_ctrl_c(broker):
    factories.ArchivedJobFactory(dead=True)
    with watching() as screen:
        screen.wait_for("1,234")
        screen.wait_for("ValueError: no such order")
        Queue.objects.filter(name="mail").update(pending_count=987)
        screen.wait_for("987")
        os.kill(screen.process.pid, signal.SIGINT)
        assert screen.end() == 0
    assert ENTER_SCREEN in screen.seen
    assert screen.seen.rindex(LEAVE_SCREEN) > screen.seen.rindex(ENTER_SCREEN)
    assert screen.seen.rindex(SHOW_CURSOR) > screen.seen.rindex(ENTER_SCREEN)
    assert "Traceback" not in screen.seen
    frames = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", frame) for frame in screen.seen.split("\x1b[H")]
    lines = next(frame for frame in frames if "987" in frame).splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80


def test_sigterm_gives_the_terminal_back_too(broker):
    with watching() as screen:
        screen.wait_for("1,234")
        screen.process.terminate()
        assert screen.end() == 0
    assert screen.seen.rindex(LEAVE_SCREEN) > screen.seen.rindex(ENTER_SCREEN)


@contextmanager
def nobody_may_connect() -> Iterator[psycopg.Connection]:
    """As in a restart: a superuser is refused too. Answers a session in another database of the server."""
    params = connections["default"].get_connection_params()
    given = {key: params[key] for key in ("host", "port", "user", "password") if params.get(key)}
    name = sql.Identifier(params["dbname"])
    with psycopg.connect(dbname="postgres", autocommit=True, **given) as session:
        session.execute(sql.SQL("alter database {} allow_connections false").format(name))
        try:
            yield session
        finally:
            session.execute(sql.SQL("alter database {} allow_connections true").format(name))


def test_a_database_that_goes_away_and_comes_back_is_told_and_survived(broker):
    with watching(PGAPPNAME="watched") as screen:
        screen.wait_for("1,234")
        with nobody_may_connect() as session:
            session.execute(
                "select pg_terminate_backend(pid, 5000) from pg_stat_activity where application_name = 'watched'"
            )
            screen.wait_for("The database has been away")
        at = len(screen.seen)
        Queue.objects.filter(name="mail").update(pending_count=5678)
        screen.wait_for("5,678", at)
        after = len(screen.seen)
        Queue.objects.filter(name="mail").update(pending_count=8765)
        screen.wait_for("8,765", after)
        assert "has been away" not in screen.plain(after)
        screen.process.terminate()
        assert screen.end() == 0


def test_a_database_that_is_away_at_the_start_is_an_ordinary_error(broker):
    with nobody_may_connect(), watching() as screen:
        screen.wait_for("did not answer")
        assert screen.end() == 1
    assert ENTER_SCREEN not in screen.seen


def draw(width: int = 80, height: int = 24, board: StatusBoard | None = None, **options: object) -> str:
    console = Console(width=width, height=height, force_terminal=True, **options)
    drawn = board or StatusBoard("default", 2, console)
    with console.capture() as capture:
        console.print(drawn.draw(read_board("default")))
    return re.sub(r"\x1b\[[0-9;]*m", "", capture.get())


@pytest.mark.django_db
@pytest.mark.parametrize(("width", "height"), [(80, 24), (60, 12), (200, 60)])
def test_the_board_fits_the_terminal_however_much_there_is(width, height):
    for number in range(30):
        factories.QueueFactory(name=f"queue-{number}-{'x' * 80}")
        factories.WorkerFactory(heartbeat_at=timezone.now())
        factories.ArchivedJobFactory(dead=True)

    lines = draw(width, height).splitlines()

    assert len(lines) <= height
    assert max(map(len, lines)) <= width
    assert [line for line in lines if re.search(r"and \d+ more", line)]


@pytest.mark.django_db
def test_hostile_names_are_printed_and_never_obeyed():
    for text in HOSTILE:
        factories.QueueFactory(name=text[:100])
        factories.WorkerFactory(name=text, queues={text: 1}, heartbeat_at=timezone.now())
        factories.ArchivedJobFactory(dead=True, error_message=text, job_type=factories.JobTypeFactory(name=text))
    factories.QueueFactory(name="[bold]no markup[/bold]")

    text = draw(200, 60)

    assert not has_control_characters(text)
    assert "[bold]no markup[/bold]" in text
    assert "\\x1b[2J" in text


@pytest.mark.django_db
def test_rates_are_executions_a_second_of_this_minute_and_the_one_before():
    queue, kind = factories.QueueFactory(name="mail"), factories.JobTypeFactory()
    minute = timezone.now().replace(second=0, microsecond=0)
    for number, (outcome, jobs) in enumerate([(1, 600), (2, 60), (4, 999)]):
        for ago, share in ((1, jobs), (5, 10_000)):
            StatMinute.objects.create(
                minute=minute - timedelta(minutes=ago),
                worker_id=number,
                queue=queue,
                job_type=kind,
                outcome=outcome,
                wait_bucket=0,
                run_bucket=0,
                jobs=share,
                wait_microseconds=0,
                run_microseconds=0,
            )

    board = read_board("default")
    seconds = 60 + board.read_at.second + board.read_at.microsecond / 1e6

    assert board.rates["mail"] == pytest.approx((600 / seconds, 60 / seconds))


@pytest.mark.django_db
def test_a_board_is_a_handful_of_queries(django_assert_max_num_queries):
    factories.QueueFactory(), factories.WorkerFactory(), factories.ArchivedJobFactory(dead=True)
    with django_assert_max_num_queries(5):
        draw()


@pytest.mark.django_db
def test_an_empty_broker_says_what_is_missing():
    Queue.objects.all().delete()

    text = draw()

    for words in ("No queue yet.", "No worker: nothing is being run.", "None."):
        assert words in text


@pytest.mark.django_db
def test_paused_queues_and_lost_workers_are_told_in_words():
    factories.QueueFactory(name="mail", paused_at=timezone.now())
    factories.WorkerFactory(name="silent", heartbeat_at=timezone.now() - timedelta(minutes=5))
    factories.WorkerFactory(name="lively", heartbeat_at=timezone.now())

    text = draw()

    assert "paused mail" in text
    assert re.search(r"silent +lost", text)
    assert re.search(r"lively +alive", text)


@pytest.mark.django_db
@pytest.mark.parametrize("words", [["--watch"], ["--watch", "--json"]])
def test_without_a_terminal_scripts_are_shown_another_way(words):
    with pytest.raises(CommandError, match="for scripts there is --json"):
        call_command("pgbroker_status", *words, stdout=StringIO())


@pytest.mark.django_db
def test_an_unknown_alias_is_an_error_before_anything_is_drawn():
    with pytest.raises(CommandError, match="'nowhere' is no alias"):
        call_command("pgbroker_status", "--watch", "--database", "nowhere", stdout=Terminal())


@pytest.mark.django_db
@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "soon", "1e9"])
def test_an_interval_that_is_none_is_refused(seconds):
    with pytest.raises(CommandError, match="is no interval"):
        call_command("pgbroker_status", f"--watch={seconds}", stdout=Terminal())


def test_without_rich_only_the_board_is_missing_and_the_remedy_is_named(broker_database):
    program = (
        "import sys; sys.modules['rich'] = None; sys.stdout.isatty = lambda: True;"
        "from django.core.management import execute_from_command_line as run; run(['manage.py', *sys.argv[1:]])"
    )
    environment = {
        **os.environ,
        "DATABASE_URL": database_url(),
        "DJANGO_SETTINGS_MODULE": "example_project.settings",
    }

    def status(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", program, "pgbroker_status", *arguments],
            cwd=PROJECT, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip

    assert status().returncode == 0
    watched = status("--watch")
    assert watched.returncode == 1
    assert "pip install" in watched.stderr
    assert "rich" in watched.stderr


@pytest.mark.parametrize(
    ("total", "wanted", "shares"),
    [
        (15, [30, 30, 30], [5, 5, 5]),
        (15, [1, 30, 2], [1, 12, 2]),
        (15, [0, 0, 0], [1, 1, 1]),
        (2, [9, 9, 9], [1, 1, 1]),
        (7, [9, 9, 9], [3, 2, 2]),
    ],
)
def test_lines_go_to_those_that_want_them(total, wanted, shares):
    assert share_lines(total, wanted) == shares


def test_bars_and_curves():
    assert draw_bar(0, 10, 8, is_plain=False) == ""
    assert draw_bar(10, 10, 8, is_plain=False) == "████████"
    assert draw_bar(5, 10, 8, is_plain=False) == "████"
    assert draw_bar(1, 1_000_000, 8, is_plain=False) == "▏"
    assert draw_bar(20, 10, 4, is_plain=True) == "####"
    assert draw_bar(1, 1_000, 4, is_plain=True) == "#"
    assert draw_curve([0, None, 5, 10], 4, is_plain=False) == "▁ ▅█"
    assert draw_curve([1, 2, 3], 2, is_plain=True) == "+#"
    assert draw_curve([0, 0], 5, is_plain=False) == "▁▁"
