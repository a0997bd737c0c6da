"""Base of middleware that does something before and after a handler, the same for sync and async ones."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction

from django_pgbroker.worker.context import JobContext

#: What ``around`` returns where there is nothing to do for this job.
NOTHING: AbstractContextManager[None] = nullcontext()


class AroundMiddleware(ABC):
    """Runs every handler inside ``around(ctx)``, which subclasses define.

    Args:
        call_next: the next middleware, or the handler.
    """

    sync_capable = True
    async_capable = True

    def __init__(self, call_next: Callable[[JobContext], Any]) -> None:
        self._call_next = call_next
        self._is_async = iscoroutinefunction(call_next)
        if self._is_async:
            markcoroutinefunction(self)

    @abstractmethod
    def around(self, ctx: JobContext) -> AbstractContextManager[Any]:
        """The context manager that the handler of this job runs in; it may swallow what is raised inside."""

    def __call__(self, ctx: JobContext) -> Any:
        """Called for every job."""
        if self._is_async:
            return self._acall(ctx)
        around = self.around(ctx)
        if around is NOTHING:
            return self._call_next(ctx)
        with around:
            return self._call_next(ctx)

    async def _acall(self, ctx: JobContext) -> Any:
        with self.around(ctx):
            return await self._call_next(ctx)
