"""What happened, in words: the only place that writes log lines. Called by worker, duties and operations."""

import logging
from typing import Any

logger = logging.getLogger("django_pgbroker")


def emit(level: int, event: str, message: str, *, exc_info: Any = None, **fields: Any) -> None:
    """Log one event; its fields travel as ``record.event`` and ``record.fields`` for structured handlers.

    Args:
        level: a level of the logging module.
        event: a stable dotted name such as ``lease.lost``.
        message: the sentence for people; it never holds payloads.
        exc_info: an exception to show with its traceback.
        fields: ids and numbers of the event.
    """
    if logger.isEnabledFor(level):
        shown = " ".join(f"{key}={value}" for key, value in fields.items())
        logger.log(
            level,
            "%s: %s%s",
            event,
            message,
            f" ({shown})" if shown else "",
            exc_info=exc_info,
            extra={"event": event, "fields": fields},
        )


def debug(event: str, message: str, **fields: Any) -> None:
    """An event that only a developer wants to see."""
    emit(logging.DEBUG, event, message, **fields)


def info(event: str, message: str, **fields: Any) -> None:
    """An event of ordinary operation."""
    emit(logging.INFO, event, message, **fields)


def warning(event: str, message: str, **fields: Any) -> None:
    """An event that an operator should know, although the broker deals with it."""
    emit(logging.WARNING, event, message, **fields)


def error(event: str, message: str, **fields: Any) -> None:
    """An event that needs somebody."""
    emit(logging.ERROR, event, message, **fields)
