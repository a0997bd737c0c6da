"""How soon a turn asks again for job rows that others hold. Used by the worker's main thread."""

from django_pgbroker.runtime.backoff_timer import BackoffTimer

_FIRST_SECONDS = 0.005
_LONGEST_SECONDS = 0.5


class BusyPace:
    """At once, as most rows are free in a moment, and then less and less often: somebody may hold one for hours."""

    def __init__(self) -> None:
        self._backoff = BackoffTimer(_FIRST_SECONDS, _LONGEST_SECONDS)
        self.seconds = _FIRST_SECONDS
        self.is_busy = False

    def learn(self, is_busy: bool) -> None:
        """Take in whether the last turn found a row that somebody holds."""
        self.is_busy = is_busy
        if is_busy:
            self.seconds = self._backoff.next_seconds()
        else:
            self._backoff.reset()
            self.seconds = _FIRST_SECONDS
