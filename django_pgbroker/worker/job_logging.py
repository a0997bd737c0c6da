"""The logger of a running job: its records carry the job's ids as the broker's own events do. For ``ctx.logger``."""

import logging
from collections.abc import MutableMapping
from typing import Any

LOGGER_PREFIX = "django_pgbroker.jobs."


class JobLogger(logging.LoggerAdapter[logging.Logger]):
    """Adds ``record.fields``; what the caller gives as ``extra`` stays, and its ``fields`` come beside the ids.

    Args:
        job_type: the name of the job type, the last part of the logger's name.
        fields: the ids.
    """

    def __init__(self, job_type: str, fields: dict[str, Any]) -> None:
        super().__init__(logging.getLogger(f"{LOGGER_PREFIX}{job_type}"), {"fields": fields})
        self._fields = fields

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Called by logging for every record that will be emitted."""
        extra = kwargs.get("extra") or {}
        kwargs["extra"] = {"event": None, **extra, "fields": {**self._fields, **extra.get("fields", {})}}
        return msg, kwargs
