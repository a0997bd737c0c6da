"""A list of ids in one column. Django's ArrayField would ask every project to install ``django.contrib.postgres``."""

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Field


class IdentifierList(Field):  # type: ignore[type-arg]
    """A ``bigint[]``, in Python a list of ints."""

    description = "List of ids"

    def db_type(self, connection: BaseDatabaseWrapper) -> str:
        """The column's type."""
        return "bigint[]"

    def get_prep_value(self, value: Any) -> list[int] | None:
        """Return what is sent to the database for ``value``."""
        return None if value is None else [int(item) for item in value]
