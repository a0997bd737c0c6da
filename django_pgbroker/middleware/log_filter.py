"""``ContextLogFilter``: every log record of a handler, by whatever logger, says which job it belongs to."""

import logging

from django_pgbroker.worker.context import current_job

_NAMES = {
    "job": "job_id",
    "job_type": "job_type",
    "attempt": "attempt",
    "tenant": "tenant",
    "correlation_id": "correlation_id",
}


class ContextLogFilter(logging.Filter):
    """For the ``filters`` of a log handler: adds ``job_id``, ``job_type``, ``attempt``, ``tenant``, ``correlation_id``.

    Outside of a job they are ``"-"``, so that a format can always name them. What a record has already is left alone;
    ``record.fields`` gets the ids too, for formatters that write data.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Called by logging for every record; lets all pass."""
        ctx = current_job()
        fields = ctx.log_fields if ctx else {}
        for name, attribute in _NAMES.items():
            if not hasattr(record, attribute):
                setattr(record, attribute, fields.get(name, "-"))
        if ctx:
            record.fields = {**fields, **getattr(record, "fields", {})}
        return True
