"""Handlers for child processes, which import this module by its name: what one does is said by its arguments."""

import ctypes
import hashlib
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

from django.db import connection

from django_pgbroker import Constant, current_job, job

LIMIT_SECONDS = 60


def note(path: str, word: str) -> None:
    """One line in a file: appending is atomic."""
    with Path(path).open("a") as file:
        file.write(f"{current_job().id} {word}\n")


def run_statement(text: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(text)
        return cursor.fetchone()[0]


def spin() -> None:
    while True:
        pass


def wait_in_many_small_sleeps() -> None:
    for _ in range(LIMIT_SECONDS * 100):
        time.sleep(0.01)


#: Ways to be busy for a minute.
BUSY = {
    "sleep": lambda: time.sleep(LIMIT_SECONDS),
    "python": spin,
    "small sleeps": wait_in_many_small_sleeps,
    "sql": lambda: run_statement("select pg_sleep(60)"),
    "lock": lambda: threading.Lock().acquire() and threading.Event().wait(LIMIT_SECONDS),
}

#: Ways to end a process.
ENDS = {
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "exit": lambda: os._exit(0),
    "abort": os.abort,
    "segfault": lambda: ctypes.string_at(0),
}


@job("children.answer", retry=Constant(0))
def answer(value: Any = None) -> Any:
    return value


@job("children.nothing", retry=Constant(0))
def nothing() -> None:
    pass


@job("children.fail", retry=Constant(0))
def fail() -> None:
    raise ValueError("bad")


@job("children.where", retry=Constant(0))
def where() -> dict[str, Any]:
    ctx = current_job()
    return {
        "pid": os.getpid(),
        "is_main_thread": threading.current_thread() is threading.main_thread(),
        "database": run_statement("select current_database()"),
        "seen": [ctx.id, ctx.job_type, ctx.queue, ctx.tenant, ctx.attempt],
        "python_path": os.environ.get("PYTHONPATH"),
        "has_deadline": ctx.deadline is not None,
    }


@job("children.end", retry=Constant(0))
def end(path: str, how: str) -> None:
    """Ends its process in the first attempt of the job."""
    note(path, "begun")
    if how in ENDS and current_job().attempt == 1:
        ENDS[how]()
    note(path, "done")


@job("children.busy", retry=Constant(0))
def busy(path: str, how: str) -> None:
    note(path, "begun")
    try:
        BUSY[how]()
    finally:
        note(path, "left")


@job("children.hash", retry=Constant(0))
def hash_for_long(path: str) -> None:
    """C code that lets go of no signal until it returns."""
    note(path, "begun")
    hashlib.pbkdf2_hmac("sha256", b"x", b"y", 200_000_000)
    note(path, "done")


@job("children.swallow", retry=Constant(0))
def swallow(path: str) -> None:
    """Ends for nothing but a kill."""
    note(path, "begun")
    while True:
        try:
            time.sleep(LIMIT_SECONDS)
        except BaseException:
            note(path, "swallowed")


@job("children.polite", retry=Constant(0))
def polite(path: str) -> str:
    """Ends when it is told to."""
    ctx = current_job()
    note(path, "begun")
    while not ctx.should_stop():
        time.sleep(0.01)
    note(path, "told")
    ctx.raise_if_stopped()
    return "unreachable"


@job("children.beating", retry=Constant(0), heartbeat_timeout=2)
def beating(path: str, beats: int) -> None:
    """Shows progress for so long, then hangs."""
    note(path, "begun")
    for _ in range(beats):
        current_job().heartbeat()
        time.sleep(0.05)
    while not current_job().should_stop():
        time.sleep(0.05)
    note(path, "told")


@job("children.hungry", retry=Constant(0))
def eat(megabytes: int) -> int:
    return len(bytearray(megabytes * 1_048_576))


@job("children.open", retry=Constant(0))
def leave_open() -> None:
    with connection.cursor() as cursor:
        cursor.execute("begin")


@job("children.pid", retry=Constant(0))
def tell_pid() -> int:
    return os.getpid()


@job("children.slow", retry=Constant(0))
def wait_for_file(path: str, gate: str) -> int:
    note(path, "begun")
    while not Path(gate).exists():
        time.sleep(0.01)
    return os.getpid()


def fork_and_use_the_orm() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0 if run_statement("select 1") == 1 else 1)
    assert os.waitpid(pid, 0)[1] == 0


@job("children.fork", retry=Constant(0))
def fork() -> int:
    """A fork with a connection of its own, and the parent's that works after it."""
    before = run_statement("select pg_backend_pid()")
    fork_and_use_the_orm()
    assert run_statement("select pg_backend_pid()") == before
    return before


@job("children.leave_fork", retry=Constant(0))
def leave_a_fork_behind() -> int:
    """The fork outlives its parent, which dies."""
    pid = os.fork()
    if pid == 0:
        time.sleep(LIMIT_SECONDS)
        os._exit(0)
    os.kill(os.getpid(), signal.SIGKILL)
    return pid


@job("children.leave_thread", retry=Constant(0))
def leave_a_thread_behind() -> int:
    """Python does not end before such a thread does."""
    threading.Thread(target=time.sleep, args=(LIMIT_SECONDS,)).start()
    return os.getpid()
