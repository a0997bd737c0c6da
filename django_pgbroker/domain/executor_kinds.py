"""Where handlers run: in threads, on an event loop, in child processes. For ``@job``, the settings and the worker."""

from enum import StrEnum

from django_pgbroker.domain.errors import InvalidOption, show_value


class ExecutorKind(StrEnum):
    """One way to run handlers; a worker has a pool of each kind that its job types need."""

    THREAD = "thread"
    ASYNC = "async"
    PROCESS = "process"


def read_executor(value: object) -> ExecutorKind | None:
    """The kind of this name; ``None`` stays open.

    Raises:
        InvalidOption: there is none of this name.
    """
    try:
        return None if value is None else ExecutorKind(value)  # type: ignore[arg-type]
    except ValueError:
        names = ", ".join(repr(kind.value) for kind in ExecutorKind)
        raise InvalidOption(f"must be one of {names}, not {show_value(value)}") from None


def choose_executor(own: ExecutorKind | None, of_queue: ExecutorKind | None, *, is_async: bool) -> ExecutorKind:
    """Where the jobs of one type in one queue run.

    Args:
        own: what the job type says.
        of_queue: what the queue's settings say.
        is_async: whether the handler is a coroutine function; only such a handler can run on the event loop.
    """
    if own is not None:
        return own
    if of_queue is not None and of_queue is not ExecutorKind.ASYNC:
        return of_queue
    return ExecutorKind.ASYNC if is_async else ExecutorKind.THREAD
