"""A small folder of sources in several encodings, and the demo as a real process on the test database."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from django.db import connection

from .demo_process import Demo

SOURCES = {
    "plain.py": b"answer = 42\n",
    "empty.py": b"",
    "marked.py": b"\xef\xbb\xbfanswer = 42\n",
    "western.py": b"# -*- coding: latin-1 -*-\nname = 'Caf\xe9'\n",
    "cyrillic.py": "# vim: set fileencoding=koi8-r :\nname = 'мир'\n".encode("koi8-r"),
    "windows.py": b"first = 1\r\nsecond = 2\r\n",
    "unended.py": b"answer = 42",
    "package/module.py": "def größe():\n    return '€'\n".encode(),
}
#: More than the shipped ones: a file of the folder itself may be broken too.
BROKEN = {"torn.py": b"call(1,\n"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Nine sources, one of them broken, below a folder with a space in its name."""
    folder = tmp_path / "some sources"
    for name, content in {**SOURCES, **BROKEN}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


@pytest.fixture
def environment(transactional_db: None) -> dict[str, str]:
    """Environment of a process that works on this test's database."""
    connection.ensure_connection()
    info = connection.connection.info
    user = quote(info.user) + (f":{quote(info.password)}" if info.password else "")
    place = f"host={quote(info.host, safe='')}&port={info.port}"
    return {
        **{name: value for name, value in os.environ.items() if name not in {"PORT", "MAKELEVEL"}},
        "DATABASE_URL": f"postgres://{user}@/{quote(info.dbname)}?{place}",
    }


@pytest.fixture
def demo(environment: dict[str, str], tmp_path: Path) -> Iterator[Callable[..., Demo]]:
    """Start the demo with arguments; whatever still runs is killed after the test."""
    started: list[Demo] = []

    def start(*arguments: str, command: tuple[str, ...] | None = None, **variables: str) -> Demo:
        output = tmp_path / f"output-{len(started)}"
        started.append(Demo(output, {**environment, **variables}, *arguments, command=command))
        return started[-1]

    yield start
    for one in started:
        one.kill()
