"""Start ``manage.py`` as a process of its own, on the database of this test run."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlencode

from django.db import connections

PROJECT = Path(__file__).parent.parent.parent


def database_url() -> str:
    """The test database as ``DATABASE_URL``; the host may be a folder with a socket."""
    params = connections["default"].get_connection_params()
    given = {key: params[key] for key in ("host", "port", "user", "password") if params.get(key)}
    return f"postgres:///{quote(params['dbname'])}?{urlencode(given)}"


@contextmanager
def manage(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A running ``manage.py``; killed at the end of the block if it still lives."""
    process = subprocess.Popen(
        [sys.executable, "manage.py", *arguments],
        cwd=PROJECT,
        env={**os.environ, "DATABASE_URL": database_url()},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
