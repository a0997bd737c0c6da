"""Let SIGTERM end a bench as Ctrl-C does, and keep both out of where they would leave something behind."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

type _Handler = Callable[[int, FrameType | None], object] | int


@contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """Within this block SIGTERM raises KeyboardInterrupt, so that everything is put away."""
    with _handled_by(signal.default_int_handler, signal.SIGTERM):
        yield


@contextmanager
def no_interrupts() -> Iterator[None]:
    """Within this block neither Ctrl-C nor SIGTERM does anything: what is being put away is put away to the end."""
    with _handled_by(signal.SIG_IGN, signal.SIGINT, signal.SIGTERM):
        yield


@contextmanager
def _handled_by(handler: _Handler, *numbers: signal.Signals) -> Iterator[None]:
    """Only a main thread may say how signals are handled; in another one nothing changes."""
    is_main = threading.current_thread() is threading.main_thread()
    previous = {number: signal.signal(number, handler) for number in numbers if is_main}
    try:
        yield
    finally:
        for number, former in previous.items():
            signal.signal(number, former)


@contextmanager
def interrupts_held_back() -> Iterator[None]:
    """Within this block this thread gets Ctrl-C later, and processes that are started in it never do."""
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)
