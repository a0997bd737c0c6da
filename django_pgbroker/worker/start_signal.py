"""Tell the receivers of ``job_started`` that a handler is about to begin. Called by the executor."""

from collections.abc import Callable
from typing import Any

from django_pgbroker.registry import JobType
from django_pgbroker.signals import job_started
from django_pgbroker.worker.context import JobContext


def tell_started(job_type: JobType, get_context: Callable[[], JobContext]) -> None:
    """Send ``job_started``; without receivers this asks for nothing."""
    if job_started.receivers:
        job_started.send_robust(job_type, **_describe_running(get_context()))


async def atell_started(job_type: JobType, get_context: Callable[[], JobContext]) -> None:
    """Send ``job_started`` from an event loop."""
    if job_started.receivers:
        await job_started.asend_robust(job_type, **_describe_running(get_context()))


def _describe_running(ctx: JobContext) -> dict[str, Any]:
    return {
        "job_id": ctx.id,
        "job_type": ctx.job_type,
        "queue": ctx.queue,
        "tenant": ctx.tenant,
        "attempt": ctx.attempt,
    }
