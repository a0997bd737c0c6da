"""How long to wait before the next try to reach a database that is away. Used by every loop with a connection."""

import random


class BackoffTimer:
    """Waits that double from a tenth of a second to a few seconds, with jitter against stampedes."""

    def __init__(self, first_seconds: float = 0.1, cap_seconds: float = 5.0) -> None:
        self._first = first_seconds
        self._cap = cap_seconds
        self._next = first_seconds

    def next_seconds(self) -> float:
        """The next wait: half of it certain, half of it drawn."""
        seconds = self._next
        self._next = min(self._next * 2, self._cap)
        return seconds * (0.5 + random.random() / 2)  # noqa: S311 - jitter, not a secret

    def reset(self) -> None:
        """Begin again with the shortest wait."""
        self._next = self._first
