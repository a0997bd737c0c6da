"""``LocaleMiddleware``: a handler runs in the language and the time zone of the code that enqueued its job."""

import datetime as dt
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.utils import timezone, translation

from django_pgbroker.middleware.around import NOTHING, AroundMiddleware
from django_pgbroker.worker.context import JobContext

_LANGUAGE, _TIME_ZONE = "language", "time_zone"


class LocaleMiddleware(AroundMiddleware):
    """Takes both along in the headers of a job, only where they differ from the project's defaults."""

    @staticmethod
    def capture_headers() -> dict[str, Any]:
        """Called by enqueue."""
        headers: dict[str, Any] = {}
        language = translation.get_language()
        if language and language != settings.LANGUAGE_CODE:
            headers[_LANGUAGE] = language
        zone = _name_zone(timezone.get_current_timezone()) if settings.USE_TZ else None
        if zone is not None and zone != settings.TIME_ZONE:
            headers[_TIME_ZONE] = zone
        return headers

    def around(self, ctx: JobContext) -> AbstractContextManager[None]:
        """Activate what was taken along, and restore what was there."""
        if not ctx.headers:
            return NOTHING
        language, zone = ctx.headers.get(_LANGUAGE), ctx.headers.get(_TIME_ZONE)
        return NOTHING if language is None and zone is None else _activated(language, zone)


@contextmanager
def _activated(language: str | None, zone: str | int | None) -> Iterator[None]:
    in_language = translation.override(language) if language is not None else nullcontext()
    in_zone = timezone.override(_find_zone(zone)) if zone is not None else nullcontext()
    with in_language, in_zone:
        yield


def _name_zone(zone: dt.tzinfo) -> str | int | None:
    """A name, or minutes east of UTC for a fixed offset; None for a kind that cannot be carried."""
    if key := getattr(zone, "key", None):
        return str(key)
    if isinstance(zone, dt.timezone) and (offset := zone.utcoffset(None)) is not None:
        return int(offset.total_seconds() // 60) or "UTC"
    return None


def _find_zone(zone: str | int) -> dt.tzinfo:
    return timezone.get_fixed_timezone(zone) if isinstance(zone, int) else ZoneInfo(zone)
