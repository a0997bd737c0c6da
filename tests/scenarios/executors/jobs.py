"""Handlers that are busy in ways that end differently, sync ones for threads and children, async ones for the loop."""

import asyncio
import hashlib
import os
import signal
import time
from multiprocessing import get_context

from asgiref.sync import sync_to_async
from django.db import connection

from django_pgbroker import Constant, current_job, job
from tests.scenarios.jobs import LIMIT_SECONDS, execute, tell


def spin():
    while True:
        pass


#: Ways to be busy for a minute.
BUSY = {
    "sleep": lambda: time.sleep(LIMIT_SECONDS),
    "python": spin,
    "c code": lambda: hashlib.pbkdf2_hmac("sha256", b"x", b"y", 200_000_000),
    "sql": lambda: execute("select pg_sleep(60)"),
}


@job("executors.busy", retry=Constant(0), max_attempts=1)
def busy(how):
    tell("begun")
    BUSY[how]()


@job("executors.busy_async", retry=Constant(0), max_attempts=1)
async def busy_async(how):
    await sync_to_async(tell)("begun")
    if how == "await":
        await asyncio.sleep(LIMIT_SECONDS)
    elif how == "python":
        spin()
    else:
        await sync_to_async(BUSY[how])()


@job("executors.wait_for_word", retry=Constant(0))
def wait_for_word():
    """Ends when it is told to stop."""
    tell("begun")
    while not current_job().should_stop():
        time.sleep(0.01)
    tell("told")
    current_job().raise_if_stopped()


@job("executors.wait_for_word_async", retry=Constant(0))
async def wait_for_word_async():
    await sync_to_async(tell)("begun")
    while not current_job().should_stop():
        await asyncio.sleep(0.01)
    await sync_to_async(tell)("told")
    current_job().raise_if_stopped()


@job("executors.die_once", retry=Constant(0))
def die_once():
    tell("begun")
    if current_job().attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    tell("done")


@job("executors.quick_async", retry=Constant(0))
async def quick_async():
    await sync_to_async(tell)("done")


def count_effects(job_id):
    """Runs in a forked process."""
    with connection.cursor() as cursor:
        cursor.execute("select count(*) from effect where job_id = %s", [job_id])
        os._exit(0 if cursor.fetchone() == (1,) else 1)


@job("executors.fork", retry=Constant(0), max_attempts=1)
def fork():
    """As a handler does that spreads its work over forked processes, each of which asks the database."""
    tell("begun")
    forks = [get_context("fork").Process(target=count_effects, args=(current_job().id,)) for _ in range(2)]
    for process in forks:
        process.start()
    for process in forks:
        process.join()
    if any(process.exitcode for process in forks):
        raise RuntimeError(f"a fork ended with {[process.exitcode for process in forks]}")
    tell("done")


def fork_and_come_back(ends):
    """Both processes leave the handler; the parent when the fork has ended."""
    tell("begun")
    if pid := os.fork():
        os.waitpid(pid, 0)
        tell("done")
        return
    execute("select 1")  # so that it has a connection that could record something
    if ends == "raises":
        raise RuntimeError("in the fork")


@job("executors.come_back", retry=Constant(0), max_attempts=1)
def come_back(ends):
    fork_and_come_back(ends)


@job("executors.come_back_atomic", retry=Constant(0), max_attempts=1, atomic=True)
def come_back_atomic(ends):
    fork_and_come_back(ends)


@job("executors.come_back_async", retry=Constant(0), max_attempts=1)
async def come_back_async(ends):
    await sync_to_async(fork_and_come_back)(ends)


@job("executors.come_back_loop", retry=Constant(0), max_attempts=1)
async def come_back_loop(ends):
    if pid := os.fork():
        os.waitpid(pid, 0)
        await sync_to_async(tell)("done")
    elif ends == "raises":
        raise RuntimeError("in the fork")
