"""Handlers of the drills. Each tells when it begins and, as its very last act, that it is done."""

import os
import signal
import subprocess
import sys
import time

from django_pgbroker import Constant, current_job, job
from tests.drills import crash_points
from tests.scenarios.jobs import tell

#: No drill may run out of attempts.
PLENTY = 1000


@job("drill.work", retry=Constant(0), max_attempts=PLENTY)
def work(milliseconds=0):
    tell("begun")
    crash_points.reach(crash_points.HANDLER)
    time.sleep(milliseconds / 1000)
    tell("done")


@job("drill.pay", retry=Constant(0), max_attempts=PLENTY, atomic=True)
def pay():
    """Its entries must appear exactly once, whatever happens: those it writes, and the job it enqueues."""
    tell("paid")
    crash_points.reach(crash_points.HANDLER)
    notify.enqueue()
    tell("done")


@job("drill.notify", retry=Constant(0), max_attempts=PLENTY)
def notify():
    tell("notified")


@job("drill.lose_a_child", retry=Constant(0), max_attempts=PLENTY)
def lose_a_child():
    """The first attempt's child process is killed, as by the kernel when memory runs out."""
    tell("begun")
    with subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(60)"]) as child:
        if current_job().attempt == 1:
            child.kill()
            raise RuntimeError(f"the child ended with {child.wait()}")
        child.kill()
    tell("done")


@job("drill.leave_a_child", retry=Constant(0), max_attempts=PLENTY)
def leave_a_child():
    """The first attempt leaves a forked child that holds copies of all open sockets, and then dies."""
    tell("begun")
    if current_job().attempt == 1:
        child = os.fork()
        if not child:
            signal.alarm(60)
            signal.pause()
            os._exit(0)
        tell(f"child {child}")
        os.kill(os.getpid(), signal.SIGKILL)
    tell("done")
