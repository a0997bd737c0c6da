"""One event loop in a thread of its own, and whether it still turns. For the event-loop pool."""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import Context
from typing import Any

from django_pgbroker import telemetry

#: How often a loop shows that it turns.
_BEAT_SECONDS = 0.25


class LoopThread:
    """A daemon thread that runs one loop until it is closed.

    Args:
        number: tells the loops of one pool apart.
        prepare: called first; what it sets in the context is seen by everything in the loop.
        default_executor: for ``asyncio.to_thread`` and look-ups of names.
    """

    def __init__(self, number: int, prepare: Callable[[], object], default_executor: ThreadPoolExecutor) -> None:
        self.loop = asyncio.new_event_loop()
        self.loop.set_default_executor(default_executor)
        #: Of all that is called in the loop, whoever asks for it.
        self.context = Context()
        self.context.run(prepare)
        self._beat_at = time.monotonic()
        self._is_closing = False
        self._thread = threading.Thread(target=self._run, name=f"pgbroker-loop-{number}", daemon=True)

    def start(self) -> None:
        """Run the loop."""
        self._thread.start()

    @property
    def silent_seconds(self) -> float:
        """How long it has not turned; less than a second or so is usual."""
        return time.monotonic() - self._beat_at

    @property
    def current_task(self) -> asyncio.Task[Any] | None:
        """The task in whose code it is at this moment."""
        return asyncio.current_task(self.loop)

    def call(self, callback: Callable[..., object], *args: Any) -> None:
        """Have this called in the loop, from any thread; nothing happens where it has ended."""
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(callback, *args, context=self.context)

    def close(self, timeout_seconds: float) -> None:
        """Cancel what still runs, give it half of the time to clean up, and end; a loop that hangs is left alone."""
        self._is_closing = True
        self.call(lambda: self.loop.create_task(self._end(timeout_seconds / 2)))
        self._thread.join(timeout_seconds)

    async def _end(self, seconds: float) -> None:
        try:
            if tasks := asyncio.all_tasks() - {asyncio.current_task()}:
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks, timeout=seconds)
            await self.loop.shutdown_asyncgens()
        finally:
            self.loop.stop()

    def _run(self) -> None:
        self._beat()
        while True:
            try:
                self.loop.run_forever()
            except BaseException as error:  # a task that a handler left behind raised SystemExit or the like
                telemetry.error("async.loop_failed", "the loop goes on", exc_info=error)
            if self._is_closing:
                return

    def _beat(self) -> None:
        self._beat_at = time.monotonic()
        self.loop.call_later(_BEAT_SECONDS, self._beat)
