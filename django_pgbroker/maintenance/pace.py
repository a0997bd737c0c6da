"""When a duty comes next and how much it takes at once. Kept by the runner, one a duty."""

import random
import time

from django_pgbroker.maintenance.duty import Duty
from django_pgbroker.runtime.backoff_timer import BackoffTimer

#: Processes that start together spread their first ticks over this long.
_STAGGER_SECONDS = 2.0

#: The pause when there was more to do than the rounds of one turn; the other duties come in between.
_BREATH_SECONDS = 0.1

#: A failing duty comes again within this time, and is told of this often.
_FAILURE_CAP_SECONDS = 60.0

#: A batch that was made smaller grows back by this part of its full size with each tick that went well.
_RESTORE_STEPS = 20


class Pace:
    """The pace of one duty; Python's clock only decides when to look, the database decides what is due.

    Args:
        duty: the duty to pace.
    """

    def __init__(self, duty: Duty) -> None:
        self.duty = duty
        self.batch = duty.batch_size
        self.failures = 0
        self.due_at = time.monotonic() + _draw(0, min(duty.interval_seconds, _STAGGER_SECONDS))
        self._backoff = BackoffTimer(first_seconds=1.0, cap_seconds=_FAILURE_CAP_SECONDS)
        self._told_at = float("-inf")

    @property
    def wait_seconds(self) -> float:
        """How long until the next tick; zero when it is due."""
        return max(self.due_at - time.monotonic(), 0.0)

    def come_again(self, has_more: bool) -> None:
        """Set the next tick after one that was run or left to another process."""
        seconds = self.duty.interval_seconds
        self._wait(min(_BREATH_SECONDS, seconds) if has_more else seconds * _draw(0.9, 1.1))

    def record_success(self) -> bool:
        """Take a tick that went well into account; whether it ended a row of failures."""
        has_recovered = self.failures > 0
        self.failures = 0
        self._backoff.reset()
        self._told_at = float("-inf")
        self.batch = min(self.batch + max(self.duty.batch_size // _RESTORE_STEPS, 1), self.duty.batch_size)
        return has_recovered

    def record_failure(self, is_timeout: bool) -> bool:
        """Back off after a failed tick, with half the batch after a time-out; whether it is time to tell people."""
        self.failures += 1
        if is_timeout:
            self.batch = max(self.batch // 2, 1)
        self._wait(self._backoff.next_seconds())
        is_time = time.monotonic() - self._told_at >= _FAILURE_CAP_SECONDS
        if is_time:
            self._told_at = time.monotonic()
        return is_time

    def _wait(self, seconds: float) -> None:
        self.due_at = time.monotonic() + seconds


def _draw(low: float, high: float) -> float:
    return random.uniform(low, high)  # noqa: S311 - jitter, not a secret
