"""``LoggingMiddleware``: a line when a handler begins and one when it ends, with the ids of its job."""

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from time import perf_counter

from django_pgbroker.middleware.around import NOTHING, AroundMiddleware
from django_pgbroker.worker.context import JobContext
from django_pgbroker.worker.job_logging import LOGGER_PREFIX


class LoggingMiddleware(AroundMiddleware):
    """Logs at INFO to ``django_pgbroker.jobs.<job type>``; where that is off it costs next to nothing."""

    def around(self, ctx: JobContext) -> AbstractContextManager[None]:
        """Log before and after."""
        return _told(ctx) if _find_logger(ctx.job_type).isEnabledFor(logging.INFO) else NOTHING


@cache
def _find_logger(job_type: str) -> logging.Logger:
    """The one behind ``ctx.logger``, which would be made in vain for every job where it is off."""
    return logging.getLogger(f"{LOGGER_PREFIX}{job_type}")


@contextmanager
def _told(ctx: JobContext) -> Iterator[None]:
    began = perf_counter()
    ctx.logger.info("started (job=%s attempt=%s)", ctx.id, ctx.attempt, extra={"event": "handler.started"})
    how = "finished"
    try:
        yield
    except BaseException as error:
        how = f"raised {type(error).__name__}"
        raise
    finally:
        seconds = perf_counter() - began
        ctx.logger.info(
            "%s after %.3f s (job=%s attempt=%s)",
            how,
            seconds,
            ctx.id,
            ctx.attempt,
            extra={"event": "handler.finished", "fields": {"seconds": round(seconds, 6), "how": how}},
        )
