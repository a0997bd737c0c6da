"""The first signal drains, the second aborts, whenever they come."""

import signal
import subprocess
import sys
import threading
from contextlib import suppress

import pytest

from django_pgbroker.runtime.stopping import Stopping

SIGNALS = [signal.SIGTERM, signal.SIGINT]


def flags(stopping):
    return stopping.drain.is_set(), stopping.abort.is_set()


def test_nothing_is_asked_at_first():
    assert flags(Stopping()) == (False, False)


@pytest.mark.parametrize("second", SIGNALS)
@pytest.mark.parametrize("first", SIGNALS)
def test_the_first_signal_drains_and_the_second_aborts(first, second):
    stopping = Stopping()
    with stopping.on_signals():
        signal.raise_signal(first)
        assert flags(stopping) == (True, False)
        signal.raise_signal(second)
        assert flags(stopping) == (True, True)


def test_where_somebody_else_says_when_to_abort_signals_only_drain():
    stopping = Stopping()
    with stopping.on_signals(escalates=False):
        for _ in range(3):
            signal.raise_signal(signal.SIGTERM)
        assert flags(stopping) == (True, False)
        stopping.request_abort()
    assert flags(stopping) == (True, True)


def test_a_signal_after_an_order_to_drain_aborts():
    stopping = Stopping()
    stopping.request_drain()
    with stopping.on_signals():
        signal.raise_signal(signal.SIGTERM)
    assert flags(stopping) == (True, True)


def test_an_abort_is_a_drain_too():
    stopping = Stopping()
    stopping.request_abort()
    assert flags(stopping) == (True, True)


def test_every_change_is_told_after_the_flag_is_set():
    seen = []
    stopping = Stopping(on_change=lambda: seen.append(flags(stopping)))
    stopping.request_drain()
    stopping.request_abort()
    assert seen == [(True, False), (True, True)]


def test_the_handlers_that_were_there_before_are_back_after_the_block():
    before = [signal.getsignal(number) for number in SIGNALS]
    stopping = Stopping()
    with stopping.on_signals():
        assert [signal.getsignal(number) for number in SIGNALS] == [stopping._receive] * 2
    assert [signal.getsignal(number) for number in SIGNALS] == before
    with suppress(ZeroDivisionError), stopping.on_signals():
        raise ZeroDivisionError
    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_signals_can_only_be_taken_in_the_main_thread():
    raised = []

    def take():
        try:
            with Stopping().on_signals():
                pass
        except ValueError as error:
            raised.append(error)

    thread = threading.Thread(target=take)
    thread.start()
    thread.join(10)
    assert len(raised) == 1


#: The second signal arrives in the first line of Python that runs within the first one's handler, then in the next …
NESTED = """
import signal, sys
from django_pgbroker.runtime.stopping import Stopping

def interrupt_at(step):
    stopping, left = Stopping(), [step]
    def trace(frame, event, argument):
        if event == "line":
            left[0] -= 1
            if left[0] == 0:
                sys.settrace(None)
                signal.raise_signal(signal.SIGINT)
        return trace
    with stopping.on_signals():
        sys.settrace(trace)
        stopping._receive(signal.SIGTERM, None)
        sys.settrace(None)
    was_interrupted = left[0] <= 0
    assert (stopping.drain.is_set(), stopping.abort.is_set()) == (True, was_interrupted)
    return was_interrupted

steps = 1
while interrupt_at(steps):
    steps += 1
print("interrupted at", steps - 1, "lines")
"""


def test_a_second_signal_within_the_handler_of_the_first_does_not_lock_up_the_process():
    done = subprocess.run([sys.executable, "-c", NESTED], capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[2]) > 3
