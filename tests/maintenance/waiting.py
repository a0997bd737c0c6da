"""Wait for a condition, never for a time."""

import time
from collections.abc import Callable


def wait_until(is_reached: Callable[[], object], what: str, seconds: float = 15) -> None:
    """Return when the condition is true.

    Raises:
        AssertionError: it was not within ``seconds``.
    """
    deadline = time.monotonic() + seconds
    while not is_reached():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.01)
