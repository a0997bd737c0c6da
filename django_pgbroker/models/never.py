"""A timestamp that may be *never*: ``infinity`` in the table, which Python cannot hold, and ``None`` in Python."""

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import DateTimeField


class TimestampOrNever(DateTimeField):  # type: ignore[type-arg]
    """A ``timestamptz not null`` whose ``infinity`` reads as ``None`` and whose ``None`` is stored as ``infinity``."""

    def select_format(self, compiler: Any, sql: str, params: Any) -> tuple[str, Any]:
        """Turn ``infinity`` into NULL inside the SELECT: psycopg refuses to load it."""
        return f"nullif({sql}, 'infinity')", params

    def get_db_prep_value(self, value: Any, connection: BaseDatabaseWrapper, prepared: bool = False) -> Any:
        """Return what is sent to the database for ``value``."""
        if value is None:
            return "infinity"
        return super().get_db_prep_value(value, connection, prepared)
