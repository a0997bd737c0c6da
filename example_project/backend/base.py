"""The backend itself. Named by the settings when no DATABASE_URL is given."""

from typing import Any

from django.db.backends.postgresql import base

from example_project.backend.client import DatabaseClient, fill_in_address


class DatabaseWrapper(base.DatabaseWrapper):
    client_class = DatabaseClient

    def get_connection_params(self) -> dict[str, Any]:
        fill_in_address(self.settings_dict)
        return super().get_connection_params()
