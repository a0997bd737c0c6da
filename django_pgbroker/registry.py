"""The job types that this process knows, by name. Filled by ``@job``, read by enqueue and by the workers."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.utils.module_loading import autodiscover_modules

from django_pgbroker.domain.arguments import HandlerSignature, bind_arguments, read_signature
from django_pgbroker.domain.backoff import Exponential, RetryPolicy
from django_pgbroker.domain.errors import ConfigurationError, DuplicateJobType, InvalidName, UnknownJobType
from django_pgbroker.domain.executor_kinds import ExecutorKind
from django_pgbroker.domain.names import check_job_type_name, suggest


@dataclass(frozen=True, eq=False)
class JobType:
    """One kind of work: a handler under a stable name, with the defaults of its jobs.

    Args:
        name: what the database stores; keep it when the function moves.
        handler: the function, sync or async.
        aliases: former names, under which stored jobs are still found.
        queue, priority, max_attempts, timeout_seconds: defaults; ``None`` means the setting's.
        statement_timeout_seconds, lock_timeout_seconds: limits of each SQL statement of the handler, and of each wait
            for a lock; ``None`` leaves them as the connection has them.
        heartbeat_timeout_seconds: how long a handler may go without ``ctx.heartbeat()``; ``None`` asks for none.
        max_interruptions: how often its jobs may be interrupted by stopping workers; ``None`` is without limit.
        retry_policy: how long to wait after a failed attempt.
        version: of the arguments' shape.
        store_result: whether the handler's answer is kept.
        is_atomic: whether the handler's transaction holds the acknowledge too.
        executor: where the handler runs; ``None`` leaves it to the queue, and else to what kind of function it is.

    Raises:
        ConfigurationError: a name or the handler's signature is impossible.
    """

    name: str
    handler: Callable[..., Any]
    aliases: tuple[str, ...] = ()
    queue: str | None = None
    priority: int | str | None = None
    max_attempts: int | None = None
    timeout_seconds: int | None = None
    heartbeat_timeout_seconds: int | None = None
    statement_timeout_seconds: float | None = None
    lock_timeout_seconds: float | None = None
    max_interruptions: int | None = None
    retry_policy: RetryPolicy = Exponential()  # noqa: RUF009 - frozen
    version: int = 1
    store_result: bool = True
    executor: ExecutorKind | None = None
    is_atomic: bool = False
    is_async: bool = field(init=False)
    signature: HandlerSignature = field(init=False, repr=False)
    session_limits: Mapping[str, float] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name in (self.name, *self.aliases):
            try:
                check_job_type_name(name)
            except InvalidName as error:
                raise ConfigurationError(str(error)) from None
        if type(self.version) is not int or not 1 <= self.version <= 32_767:
            raise ConfigurationError(f"job type {self.name!r}: version must be a whole number from 1 to 32,767")
        if not isinstance(self.retry_policy, RetryPolicy):
            raise ConfigurationError(
                f"job type {self.name!r}: retry must have a delay_seconds(attempt, random), as Exponential() and "
                f"Constant(30) have, not {self.retry_policy!r}"
            )
        if inspect.isgeneratorfunction(self.handler) or inspect.isasyncgenfunction(self.handler):
            raise ConfigurationError(
                f"job type {self.name!r}: {self.place} is a generator function, and calling one runs nothing. "
                "Remove the yield, or iterate it inside an ordinary function"
            )
        object.__setattr__(self, "is_async", _is_async(self.handler))
        object.__setattr__(self, "signature", read_signature(self.handler))
        object.__setattr__(self, "session_limits", self._read_session_limits())
        self._check_executor()

    def _read_session_limits(self) -> dict[str, float]:
        limits = {"statement_timeout": self.statement_timeout_seconds, "lock_timeout": self.lock_timeout_seconds}
        return {name: seconds for name, seconds in limits.items() if seconds is not None}

    def _check_executor(self) -> None:
        on_loop = self.is_async and self.executor in (None, ExecutorKind.ASYNC)
        if on_loop and self.session_limits:
            raise ConfigurationError(
                f"job type {self.name!r}: {next(iter(self.session_limits))} needs a connection that no other job uses, "
                "and jobs on the event loop share theirs: add executor='thread'"
            )
        if self.is_atomic and self.is_async:
            raise ConfigurationError(
                f"job type {self.name!r}: atomic=True needs an ordinary function, for Django has no transaction "
                f"over an await, and {self.place} is async def"
            )
        if self.executor is ExecutorKind.ASYNC and not self.is_async:
            raise ConfigurationError(
                f"job type {self.name!r}: executor='async' needs a handler that is declared async def, and "
                f"{self.place} is not: it would hold up every other job of the event loop"
            )

    @property
    def takes_context(self) -> bool:
        """Whether the worker must give the job's context as ``ctx``."""
        return self.signature.takes_context

    @property
    def place(self) -> str:
        """Where the handler is written, for messages."""
        code = getattr(inspect.unwrap(self.handler), "__code__", None)
        where = f" ({code.co_filename}:{code.co_firstlineno})" if code else ""
        return f"{self.handler.__module__}.{getattr(self.handler, '__qualname__', repr(self.handler))}{where}"

    def bind(self, args: Sequence[object], kwargs: Mapping[str, object]) -> dict[str, object]:
        """The arguments by name.

        Raises:
            InvalidArguments: they do not fit the handler's signature.
        """
        return bind_arguments(self.name, self.signature, args, kwargs)


class Registry:
    """Names and aliases to job types; one name has one handler."""

    def __init__(self) -> None:
        self._by_name: dict[str, JobType] = {}

    def register[T: JobType](self, job_type: T) -> T:
        """Add a job type and return it.

        Raises:
            DuplicateJobType: its name or an alias is taken, by another or by itself.
        """
        names = (job_type.name, *job_type.aliases)
        for name in names:
            if taken := self._by_name.get(name):
                raise DuplicateJobType(
                    f"{name!r} is the name or an alias of two job types: {taken.place} and {job_type.place}. "
                    "Rename one of them"
                )
        if len(set(names)) < len(names):
            raise DuplicateJobType(f"job type {job_type.name!r} at {job_type.place} repeats a name in its aliases")
        self._by_name.update(dict.fromkeys(names, job_type))
        return job_type

    def get(self, name: str) -> JobType:
        """The job type of this name or alias.

        Raises:
            UnknownJobType: there is none; the message names similar ones.
        """
        try:
            return self._by_name[name]
        except KeyError:
            raise UnknownJobType(
                f"no job type is registered as {name!r}. {suggest(name, self._by_name)} "
                "Job types are found in the module jobs.py of each installed app"
            ) from None

    def forget(self, name: str) -> JobType | None:
        """Take a name or alias out again and return what it stood for; for tests that declare their own."""
        return self._by_name.pop(name, None)

    def knows(self, name: str) -> bool:
        """Whether a job type has this name or alias."""
        return name in self._by_name

    def names(self) -> list[str]:
        """All names and aliases, sorted."""
        return sorted(self._by_name)

    def all(self) -> list[JobType]:
        """All job types, each once, by name."""
        return sorted(set(self._by_name.values()), key=lambda job_type: job_type.name)


registry = Registry()


def discover() -> None:
    """Import the module ``jobs`` of every installed app, so that its job types are registered."""
    autodiscover_modules("jobs")


def _is_async(handler: Callable[..., Any]) -> bool:
    return iscoroutinefunction(handler) or iscoroutinefunction(getattr(handler, "__call__", None))  # noqa: B004
