"""The chain of middleware around handlers: built once a process, checked at the start, called by the executor."""

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

from asgiref.sync import async_to_sync, iscoroutinefunction
from django.core.exceptions import MiddlewareNotUsed
from django.core.signals import setting_changed

from django_pgbroker.conf import get_settings
from django_pgbroker.domain.errors import ConfigurationError
from django_pgbroker.plugins import import_middleware
from django_pgbroker.registry import JobType, registry
from django_pgbroker.worker.context import JobContext

type Call = Callable[[JobContext], Any]

#: The handler at the end of the chain and its arguments, for the job that runs in this context.
_waiting_call: ContextVar[tuple[JobType, dict[str, Any]]] = ContextVar("pgbroker_waiting_call")


class Chain:
    """Middleware around sync handlers, and the same around async ones; each is built when the first one needs it.

    Args:
        paths: dotted paths, the outermost first; at least one.
    """

    def __init__(self, paths: tuple[str, ...]) -> None:
        self._paths = paths
        self._calls: dict[bool, Call] = {}

    def require(self, job_types: Iterable[JobType]) -> None:
        """Build what these job types need.

        Raises:
            ConfigurationError: a middleware cannot be imported or built, or cannot serve the handler of one of them.
        """
        for job_type in job_types:
            self._call_for(job_type)

    def run(self, job_type: JobType, ctx: JobContext, arguments: dict[str, Any]) -> Any:
        """Call a handler, sync or async, within the middleware, from a thread without an event loop."""
        call = self._call_for(job_type)
        _waiting_call.set((job_type, arguments))
        return async_to_sync(call)(ctx) if job_type.is_async else call(ctx)

    async def arun(self, job_type: JobType, ctx: JobContext, arguments: dict[str, Any]) -> Any:
        """Call an async handler within the middleware, on the event loop."""
        call = self._call_for(job_type)
        _waiting_call.set((job_type, arguments))
        return await call(ctx)

    def _call_for(self, job_type: JobType) -> Call:
        call = self._calls.get(job_type.is_async)
        if call is None:
            call = self._calls[job_type.is_async] = self._build(job_type)
        return call

    def _build(self, job_type: JobType) -> Call:
        call: Call = _await_handler if job_type.is_async else _call_handler
        for path in reversed(self._paths):
            factory = import_middleware(path)
            try:
                made = factory(call)
            except MiddlewareNotUsed:
                continue
            except Exception as error:
                raise ConfigurationError(
                    f"PGBROKER['MIDDLEWARE']: {path!r} cannot be built: {type(error).__name__}: {error}"
                ) from error
            _check_ability(path, factory, job_type)
            _check_made(path, made, is_async=job_type.is_async)
            call = made
        return call


def is_able(factory: object, *, is_async: bool) -> bool:
    """Whether a middleware says that it serves handlers of this kind, with the same marks as Django's."""
    return bool(getattr(factory, "async_capable", False) if is_async else getattr(factory, "sync_capable", True))


def _check_ability(path: str, factory: object, job_type: JobType) -> None:
    if not is_able(factory, is_async=job_type.is_async):
        kind, mark = ("async", "async_capable") if job_type.is_async else ("sync", "sync_capable")
        raise ConfigurationError(
            f"PGBROKER['MIDDLEWARE']: {path!r} is not made for {kind} handlers ({mark} is False), and that of the job "
            f"type {job_type.name!r} is one. Make it so, leave it out, or start this worker with --exclude-types"
        )


def _check_made(path: str, made: object, *, is_async: bool) -> None:
    if not callable(made):
        raise ConfigurationError(f"PGBROKER['MIDDLEWARE']: {path!r} must return a callable, not {made!r}")
    answers_async = iscoroutinefunction(made) or iscoroutinefunction(getattr(made, "__call__", None))  # noqa: B004
    if answers_async != is_async:
        was, asked = ("async", "sync") if answers_async else ("sync", "async")
        hint = "mark it by markcoroutinefunction of asgiref" if is_async else "look at iscoroutinefunction(call_next)"
        raise ConfigurationError(f"PGBROKER['MIDDLEWARE']: {path!r} gave something {was} for {asked} handlers; {hint}")


def _call_handler(ctx: JobContext) -> Any:
    job_type, arguments = _waiting_call.get()
    return job_type.handler(**_with_context(job_type, ctx, arguments))


async def _await_handler(ctx: JobContext) -> Any:
    job_type, arguments = _waiting_call.get()
    return await job_type.handler(**_with_context(job_type, ctx, arguments))


def _with_context(job_type: JobType, ctx: JobContext, arguments: dict[str, Any]) -> dict[str, Any]:
    """The handler sees the context that the innermost middleware passed on."""
    return {**arguments, "ctx": ctx} if job_type.takes_context else arguments


@lru_cache(maxsize=1)
def load_chain() -> Chain | None:
    """The chain of this process; None where no middleware is configured."""
    paths = get_settings().middleware
    return Chain(paths) if paths else None


def require_middleware(job_type_names: Iterable[str]) -> None:
    """Build the middleware that these job types need, before a worker registers itself.

    Raises:
        ConfigurationError: as ``Chain.require`` says.
    """
    if chain := load_chain():
        chain.require(registry.get(name) for name in job_type_names)


def _forget_chain(*, setting: str, **_: object) -> None:
    if setting == "PGBROKER":
        load_chain.cache_clear()


setting_changed.connect(_forget_chain)
