"""Where the embedded server is, and the psql that ``manage.py dbshell`` runs on it."""

from typing import Any

from django.db.backends.postgresql import client
from django.db.utils import OperationalError

from example_project import embedded


def fill_in_address(settings_dict: dict[str, Any]) -> None:
    """Attach to the embedded server and put its address into ``settings_dict``, in place: its copies share the dict.

    Raises:
        django.db.OperationalError: the server does not start.
    """
    if settings_dict["HOST"]:
        return
    try:
        address = embedded.attach()
    except embedded.EmbeddedServerError as error:
        raise OperationalError(f"embedded PostgreSQL: {error}") from error
    # The port too: PGPORT in somebody's environment would name another socket.
    settings_dict.update(HOST=address.host, PORT=address.port, USER=address.user)


class DatabaseClient(client.DatabaseClient):
    @classmethod
    def settings_to_cmd_args_env(
        cls, settings_dict: dict[str, Any], parameters: Any
    ) -> tuple[list[str], dict[str, str] | None]:
        fill_in_address(settings_dict)
        arguments, environment = super().settings_to_cmd_args_env(settings_dict, parameters)
        return [str(embedded.psql()), *arguments[1:]], environment
