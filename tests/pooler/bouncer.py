"""A real PgBouncer in transaction mode before the server of this test run."""

import os
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connections

from tests.maintenance.waiting import wait_until
from tests.scenarios.processes import database_of_this_run

#: Set in CI: there a missing PgBouncer is a failure.
REQUIRED = "PGBROKER_REQUIRE_POOLER"

_CONFIGURATION = """
[databases]
* = {server}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
admin_users = admin
pool_mode = transaction
default_pool_size = {pool_size}
max_client_conn = 200
server_login_retry = 1
{account}
"""


class Bouncer:
    """Listens on a free port of loopback; may be killed and started again on the same port.

    Args:
        folder: for its configuration and its log.
        pool_size: how many server connections all clients share.

    Attributes:
        direct: the test database without it, as Django's settings want it.
    """

    def __init__(self, folder: Path, pool_size: int) -> None:
        self._folder = folder
        self._program = find_program()
        self._process: subprocess.Popen[bytes] | None = None
        self.pool_size = pool_size
        self.direct = database_of_this_run()
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        (folder / "pgbouncer.ini").write_text(self._configure())

    def _configure(self) -> str:
        params = connections["default"].get_connection_params()
        host = str(params.get("host") or "localhost")
        server = {"host": host, "port": params.get("port"), "user": params.get("user")}
        server["password"] = params.get("password")
        return _CONFIGURATION.format(
            server=" ".join(f"{key}='{value}'" for key, value in server.items() if value),
            port=self.port,
            pool_size=self.pool_size,
            account=f"user = {_account_for(host)}" if os.geteuid() == 0 else "",
        )

    def start(self) -> "Bouncer":
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._program, str(self._folder / "pgbouncer.ini")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        wait_until(lambda: self._answers() or not self._lives, "PgBouncer answers")
        assert self._lives, self.log
        return self

    def kill(self) -> None:
        """End it in the middle of whatever its clients do."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)

    @property
    def log(self) -> str:
        return (self._folder / "log").read_text()

    @property
    def database(self) -> dict[str, Any]:
        """The test database through it, as Django's settings want it."""
        return {
            **self.direct,
            "HOST": "127.0.0.1",
            "PORT": str(self.port),
            "DISABLE_SERVER_SIDE_CURSORS": True,
            "OPTIONS": {"sslmode": "disable"},
        }

    def connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        """Another client of the same pool."""
        return self._connect(self.database["NAME"], self.database["USER"] or "postgres")

    def count_waiting(self) -> int:
        """How many clients wait for a server connection."""
        with self._connect("pgbouncer", "admin") as console:
            cursor = console.execute("show pools")
            assert cursor.description
            columns = [column.name for column in cursor.description]
            return sum(dict(zip(columns, row, strict=True))["cl_waiting"] for row in cursor.fetchall())

    def _connect(self, database: str, user: str) -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(
            host="127.0.0.1", port=self.port, dbname=database, user=user, sslmode="disable", connect_timeout=10,
            autocommit=True, prepare_threshold=None,
        )  # fmt: skip

    @property
    def _lives(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True


def find_program() -> str:
    """The program; without it the test is skipped, or fails where it must not be missing."""
    found = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if found is None:
        missing = "no pgbouncer on this machine; install it (apt-get install pgbouncer) to run this test"
        if os.environ.get(REQUIRED):
            pytest.fail(missing)
        pytest.skip(missing)
    return found


def _account_for(host: str) -> str:
    """It refuses to run as root: the owner of the server's socket may come to it, and is not root either."""
    owner = Path(host).owner() if host.startswith("/") else "root"
    return "nobody" if owner == "root" else owner
