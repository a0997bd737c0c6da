"""Middleware of the tests; what it did is in ``SEEN``."""

from asgiref.sync import iscoroutinefunction
from django.core.exceptions import MiddlewareNotUsed
from django.utils.decorators import sync_and_async_middleware

from django_pgbroker.middleware import AroundMiddleware

SEEN: list[str] = []
BUILT: list[str] = []


def outer(call_next):
    BUILT.append("outer")

    def run(ctx):
        SEEN.append(f"outer before {ctx.job_type}")
        try:
            return call_next(ctx)
        finally:
            SEEN.append("outer after")

    return run


class Inner:
    def __init__(self, call_next):
        self._call_next = call_next

    def __call__(self, ctx):
        SEEN.append("inner before")
        value = self._call_next(ctx)
        SEEN.append("inner after")
        return value


@sync_and_async_middleware
def both(call_next):
    if iscoroutinefunction(call_next):

        async def run(ctx):
            SEEN.append("async before")
            return await call_next(ctx)
    else:

        def run(ctx):
            SEEN.append("sync before")
            return call_next(ctx)

    return run


def swallow(call_next):
    def run(ctx):
        try:
            return call_next(ctx)
        except ValueError as error:
            return f"swallowed {error}"

    return run


def refuse(call_next):
    def run(ctx):
        raise PermissionError("not today")

    return run


def broken(call_next):
    raise RuntimeError("no server to report to")


def returns_nothing(call_next):
    return None


def unused(call_next):
    raise MiddlewareNotUsed


@sync_and_async_middleware
def forgetful(call_next):
    """Says that it can do async and does not."""

    def run(ctx):
        return call_next(ctx)

    return run


class Tracing(AroundMiddleware):
    @staticmethod
    def capture_headers():
        return {"trace": "t-1"}
