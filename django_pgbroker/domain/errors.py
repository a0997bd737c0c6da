"""Every error of the broker that is not a database's. Each class has a stable ``code`` that callers may rely on."""


def show_value(value: object, limit: int = 100) -> str:
    """A value as an error message shows it: never longer than ``limit``, whatever its ``repr`` does."""
    try:
        shown = repr(value)
    except Exception:
        shown = f"a {type(value).__name__}"
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


class PgbrokerError(Exception):
    """The root of all errors that this package raises on purpose."""

    code = "pgbroker_error"


class ConfigurationError(PgbrokerError):
    """``settings.PGBROKER`` or a declaration in code is wrong; the message says what to write instead."""

    code = "configuration_error"


class DuplicateJobType(ConfigurationError):
    """Two handlers claim one name or alias."""

    code = "duplicate_job_type"


class UnknownJobType(PgbrokerError):
    """No handler is registered under this name."""

    code = "unknown_job_type"


class UnknownQueue(PgbrokerError):
    """The queue is not among those that the settings declare, or has no row where one is needed."""

    code = "unknown_queue"


class InvalidName(PgbrokerError):
    """A name of a queue, job type or tenant has characters or a length that names may not have."""

    code = "invalid_name"


class InvalidArguments(PgbrokerError):
    """The arguments do not fit the handler.

    Args:
        job_type: the name of the job type.
        argument: the argument at fault; empty when the fault is no single argument's.
        reason: what is wrong and what to do.
    """

    code = "invalid_arguments"

    def __init__(self, job_type: str, argument: str, reason: str) -> None:
        super().__init__(job_type, argument, reason)
        self.job_type = job_type
        self.argument = argument
        self.reason = reason

    def __str__(self) -> str:
        which = f", argument {self.argument!r}" if self.argument else ""
        return f"job type {self.job_type!r}{which}: {self.reason}"


class InvalidPayload(PgbrokerError):
    """A value is no strict JSON, so it would not arrive as it was sent.

    Args:
        path: where the value is, as in ``arguments.items[3].price``.
        hint: what is wrong and what to send instead.
    """

    code = "invalid_payload"

    def __init__(self, path: str, hint: str) -> None:
        super().__init__(path, hint)
        self.path = path
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.path}: {self.hint}"


class PayloadTooLarge(InvalidPayload):
    """The encoded value has more bytes than its limit."""

    code = "payload_too_large"


class InvalidOption(PgbrokerError):
    """An option of one job is impossible: a naive time, an absurd number, two options that contradict each other."""

    code = "invalid_option"


class JobNotFound(PgbrokerError):
    """There is no such job: it was never committed, or its history has been pruned."""

    code = "job_not_found"


class JobFinished(PgbrokerError):
    """The job has ended already, and what was asked is only possible before."""

    code = "job_finished"


class VerbRefused(PgbrokerError):
    """The job is in a state in which this cannot be done to it; the message says which states can."""

    code = "verb_refused"


class NotPermitted(PgbrokerError):
    """The user may not do this, or not to this queue or tenant."""

    code = "not_permitted"


class WorkerNotFound(PgbrokerError):
    """There is no such worker, or it has stopped."""

    code = "worker_not_found"


class QueueNotServed(InvalidOption):
    """The worker does not serve this queue; the message names those that it does."""

    code = "queue_not_served"


class JobNotFinished(PgbrokerError):
    """The result was asked for while the job still waits or runs."""

    code = "job_not_finished"


class ResultNotStored(PgbrokerError):
    """The job completed, but its job type keeps no result."""

    code = "result_not_stored"


class JobFailed(PgbrokerError):
    """The job ended without a result.

    Args:
        job_id: the job.
        state: the word for its final state: ``dead``, ``cancelled`` or ``expired``.
        error_class: dotted name of the last exception, if one was raised.
        message: the last error's text, or the reason of the end.
    """

    code = "job_failed"

    def __init__(self, job_id: int, state: str, error_class: str | None = None, message: str | None = None) -> None:
        super().__init__(job_id, state, error_class, message)
        self.job_id = job_id
        self.state = state
        self.error_class = error_class
        self.message = message

    def __str__(self) -> str:
        cause = ": ".join(part for part in (self.error_class, self.message) if part)
        return f"job {self.job_id} is {self.state}" + (f" ({cause})" if cause else "")
