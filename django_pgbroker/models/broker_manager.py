"""The manager of every model: it goes where ``PGBROKER["DATABASE"]`` says, as the operations do."""

from typing import Any

from django.db import models

from django_pgbroker.conf import get_settings


class BrokerManager(models.Manager[Any]):
    """Rows of the broker's database; ``.using(alias)`` asks another one.

    Screens, commands and user code need not name the alias, and a project needs no router for these tables.
    """

    def get_queryset(self) -> models.QuerySet[Any, Any]:
        """All rows, in the database of the settings unless the manager was told another.

        Raises:
            ConfigurationError: ``settings.PGBROKER`` is wrong.
        """
        rows = super().get_queryset()
        return rows if self._db else rows.using(get_settings().database)
