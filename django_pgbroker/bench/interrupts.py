"""Keep Ctrl-C out of where it would leave something behind."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_interrupts() -> Iterator[None]:
    """Within this block Ctrl-C does nothing: what is being put away is put away to the end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


@contextmanager
def interrupts_held_back() -> Iterator[None]:
    """Within this block this thread gets Ctrl-C later, and processes that are started in it never do."""
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)
