"""Import what ``PGBROKER["MIDDLEWARE"]`` names. Used by enqueue, by the workers and by the checks."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from django.utils.module_loading import import_string

from django_pgbroker.domain.errors import ConfigurationError


@lru_cache(maxsize=64)
def import_middleware(path: str) -> Callable[[Any], Any]:
    """The class or function behind a dotted path.

    Raises:
        ConfigurationError: it cannot be imported, or is nothing that can be called.
    """
    try:
        factory = import_string(path)
    except Exception as error:
        raise ConfigurationError(
            f"PGBROKER['MIDDLEWARE']: {path!r} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    if not callable(factory):
        raise ConfigurationError(f"PGBROKER['MIDDLEWARE']: {path!r} is {factory!r}, no class and no function")
    return factory  # type: ignore[no-any-return]


def capture_headers(paths: tuple[str, ...]) -> dict[str, Any] | None:
    """What the middleware wants to travel with a job that is being enqueued here; None for nothing.

    Raises:
        ConfigurationError: a middleware cannot be imported.
    """
    headers: dict[str, Any] = {}
    for path in paths:
        if capture := getattr(import_middleware(path), "capture_headers", None):
            headers |= capture()
    return headers or None
