"""Handlers of the scenarios. Each tells the table ``effect`` that it ran; gates are rows of the table ``gate``."""

import asyncio
import os
import signal
import time

from asgiref.sync import sync_to_async
from django.db import connection, transaction

from django_pgbroker import Constant, current_job, job

LIMIT_SECONDS = 60


def execute(text, *params):
    with connection.cursor() as cursor:
        cursor.execute(text, params)
        return cursor.fetchall() if cursor.description else []


def tell(what):
    """One row of what happened, committed at once."""
    ctx = current_job()
    execute(
        "insert into effect (job_id, lease_token, process_id, what) values (%s, %s, %s, %s)",
        ctx.id, ctx.lease_token, os.getpid(), what,
    )  # fmt: skip


def wait_for_gate(name):
    """Return when the test has opened the gate."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while not execute("select 1 from gate where name = %s", name):
        if time.monotonic() > deadline:
            raise TimeoutError(f"the gate {name} was never opened")
        time.sleep(0.02)


@job("scenario.quick", retry=Constant(0))
def quick():
    tell("done")


@job("scenario.gated", retry=Constant(0))
def gated(gate):
    tell("begun")
    wait_for_gate(gate)
    tell("done")


@job("scenario.sleepy", retry=Constant(0))
def sleepy(seconds):
    """Needs no database while it works, as a handler that computes."""
    tell("begun")
    time.sleep(seconds)
    tell("done")
    return os.getpid()


@job("scenario.stubborn", retry=Constant(0))
def stubborn():
    tell("begun")
    time.sleep(LIMIT_SECONDS)


@job("scenario.stubborn_async", retry=Constant(0), executor="thread")
async def stubborn_async():
    await sync_to_async(tell)("begun")
    await asyncio.sleep(LIMIT_SECONDS)


@job("scenario.suicide", retry=Constant(0), max_attempts=3)
def suicide():
    tell("begun")
    os.kill(os.getpid(), signal.SIGKILL)


@job("scenario.kill_the_first_time", retry=Constant(0))
def kill_the_first_time():
    tell("begun")
    if current_job().attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    tell("done")


@job("scenario.stepwise", retry=Constant(0))
def stepwise(ctx, steps):
    """Each step waits at its gate; the first attempt dies in the step whose gate is called so."""
    results = []
    for number in range(steps):
        ctx.progress(number, steps, f"step {number}")
        with ctx.step(f"step {number}") as step:
            if step.is_new:
                tell(f"begun {number}")
                wait_for_gate(f"step {number}")
                if execute("delete from gate where name = %s returning name", f"die in {number}"):
                    os.kill(os.getpid(), signal.SIGKILL)
                tell(f"done {number}")
                step.result = os.getpid()
        results.append(step.result)
    return results


@job("scenario.import_rows", retry=Constant(0))
def import_rows(ctx, rows, dies_at):
    """Writes each row together with the cursor; the first attempt dies in the middle of a transaction."""
    for number in range(ctx.cursor or 0, rows):
        with transaction.atomic():
            tell(f"row {number}")
            if number == dies_at and ctx.attempt == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            ctx.save_cursor(number + 1)


@job("scenario.debugged", retry=Constant(0), timeout=1)
def debugged():
    word = "looked at"
    breakpoint()
    tell("done")
    return word


@job("scenario.hopeless", retry=Constant(0), max_attempts=1)
def hopeless(left):
    raise ValueError(f"no such order: {left}")


@job("scenario.mended")
def mended(left):
    """What failed before and works now."""
