"""The clock of the database as a process knows it between two answers. Read for times that people see and deadlines."""

import time


class DatabaseClock:
    """The database's time, carried on by this process's monotonic clock; its wall clock is never asked."""

    def __init__(self) -> None:
        self._offset: float | None = None

    def learn(self, epoch_seconds: float) -> None:
        """Take in what the database said a moment ago."""
        self._offset = epoch_seconds - time.monotonic()

    def now(self) -> float | None:
        """Epoch seconds; ``None`` until the database has been asked."""
        return None if self._offset is None else self._offset + time.monotonic()

    def seconds_until(self, epoch_seconds: float) -> float | None:
        """How long until then, negative after it."""
        now = self.now()
        return None if now is None else epoch_seconds - now
