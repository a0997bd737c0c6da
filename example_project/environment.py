"""Read the two values of the environment that people mistype, and say what is wrong with them. Used by settings.py."""

from typing import Any

import environ
from django.core.exceptions import ImproperlyConfigured

SCHEMES = ("postgres", "postgresql", "psql", "pgsql")
EXAMPLE = "postgres://user@host/database"
HIGHEST_PORT = 65_535


def read_database(env: environ.Env) -> dict[str, Any]:
    """Return the entry of ``DATABASES`` that DATABASE_URL names. The URL is never shown: it may hold a password.

    Raises:
        ImproperlyConfigured: it is no URL of a PostgreSQL database.
    """
    scheme, found, _ = env("DATABASE_URL").partition("://")
    if not found:
        raise _bad_url("it does not begin with a scheme")
    if scheme not in SCHEMES:
        raise _bad_url(f"its scheme is not one of {', '.join(SCHEMES)}")
    try:
        entry: dict[str, Any] = env.db("DATABASE_URL")
    except ValueError as error:
        raise _bad_url(f"it cannot be read ({error})") from error
    if not entry["NAME"]:
        raise _bad_url("it names no database")
    return entry


def _bad_url(reason: str) -> ImproperlyConfigured:
    return ImproperlyConfigured(
        f"DATABASE_URL is wrong: {reason}. Next: write it as {EXAMPLE}, or unset it to use the embedded server."
    )


def read_port(env: environ.Env, default: int) -> int:
    """Return PORT, where the demo's web server listens; 0 is any free port.

    Raises:
        ImproperlyConfigured: it is no port.
    """
    given: str = env("PORT", default=str(default)).strip() or str(default)
    # int() takes more than digits, such as 8_000
    if not (given.isascii() and given.isdigit()) or int(given[:10]) > HIGHEST_PORT:
        raise ImproperlyConfigured(
            f"PORT is {given[:40]!r}, which is no port. Next: set it to a number from 0 (any free one) to "
            f"{HIGHEST_PORT}, such as 8001, or unset it."
        )
    return int(given)
