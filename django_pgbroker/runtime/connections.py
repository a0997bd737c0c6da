"""Open the broker's own connections from Django's settings. Used by the worker, the duties and the listener."""

from typing import Any

import psycopg
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg import sql
from psycopg.types.numeric import Int8Dumper

from django_pgbroker.conf import get_settings
from django_pgbroker.runtime.bounded_connection import BoundedConnection
from django_pgbroker.runtime.pooled_gateway import PooledGateway
from django_pgbroker.store.gateway import Gateway

#: PostgreSQL keeps 63 bytes of an application name.
_NAME_LIMIT = 63

#: Client settings of libpq: a peer that vanished without a word is noticed within about half a minute.
_KEEPALIVES = {
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    "connect_timeout": 10,
}

#: The server ends a statement after its time-out; where it has said nothing for so much longer, it will not any more.
_GRACE_SECONDS = 5.0

#: PostgreSQL 17 has ``transaction_timeout``; before, nothing ends a pipelined transaction whose client is frozen.
_TRANSACTION_TIMEOUT_SINCE = 170_000

#: The planner settings are insurance: statistics taken on an empty table must never choose a scan of the live table.
#: One plan for all parameters, made once: for a claim PostgreSQL would choose to make a new one every time.
_SESSION_SETTINGS = {
    "default_transaction_isolation": "read committed",
    "timezone": "UTC",
    "statement_timeout": "30s",
    "lock_timeout": "5s",
    "idle_in_transaction_session_timeout": "15s",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_sort": "off",
    "jit": "off",
    "plan_cache_mode": "force_generic_plan",
}


def open_connection(alias: str, role: str, **session_settings: str) -> psycopg.Connection[tuple[Any, ...]]:
    """Open a connection of the broker's own to the database ``alias``: autocommit, prepared statements, safe time-outs.

    A server that stays silent for longer than ``statement_timeout`` and a grace is an ``OperationalError`` too.

    Args:
        alias: a key of ``settings.DATABASES``; a test database is followed.
        role: what the connection is for, shown in ``pg_stat_activity`` as ``pgbroker <role>``.
        session_settings: settings of PostgreSQL that replace the broker's own.

    Raises:
        psycopg.OperationalError: the server cannot be reached.
    """
    wrapper = connections[alias]
    connection = _connect(wrapper, role, is_pooled=False)
    _set_up(connection, _compose_settings(connection, wrapper, session_settings, is_local=False))
    return connection


def open_gateway(alias: str, role: str, **session_settings: str) -> Gateway:
    """A gateway on a connection of its own, for what stands between it and the server: nothing, or a pooler.

    The arguments and the errors are those of ``open_connection``. Close it by ``gateway.connection.close()``.
    """
    if not get_settings().is_pooled(alias):
        return Gateway(open_connection(alias, role, **session_settings))
    wrapper = connections[alias]
    connection = _connect(wrapper, role, is_pooled=True)
    settings = _compose_settings(connection, wrapper, session_settings, is_local=True)
    _set_up(connection, settings)
    return PooledGateway(connection, settings)


def _connect(wrapper: BaseDatabaseWrapper, role: str, *, is_pooled: bool) -> BoundedConnection:
    params = wrapper.get_connection_params()
    for unused in ("cursor_factory", "context", "prepare_threshold"):
        params.pop(unused, None)
    options = params.pop("options", "")
    connection = BoundedConnection.connect(
        **{**_KEEPALIVES, **params},
        autocommit=True,
        prepare_threshold=None if is_pooled else 0,
        application_name=f"pgbroker {role}"[:_NAME_LIMIT],
        # a pooler refuses them; given in any case, so that those of the environment (PGOPTIONS) never count
        options="" if is_pooled else options,
    )
    connection.adapters.register_dumper(int, Int8Dumper)
    return connection


def _compose_settings(
    connection: BoundedConnection, wrapper: BaseDatabaseWrapper, wishes: dict[str, str], *, is_local: bool
) -> sql.Composed:
    """The statement that makes the broker's settings, for the session or for the transaction that it is in."""
    assumed_role = wrapper.settings_dict.get("OPTIONS", {}).get("assume_role")
    values = {**({"role": assumed_role} if assumed_role else {}), **_SESSION_SETTINGS, **wishes}
    if connection.info.server_version < _TRANSACTION_TIMEOUT_SINCE:
        values.pop("transaction_timeout", None)
    assignments = sql.SQL(", ").join(
        sql.SQL("set_config({}, {}, {})").format(sql.Literal(key), sql.Literal(value), sql.Literal(is_local))
        for key, value in values.items()
    )
    return sql.SQL("select {}").format(assignments)


def _set_up(connection: BoundedConnection, settings: sql.Composed) -> None:
    """Make the settings, and learn from them how long the server may be silent."""
    limit = sql.SQL(", extract(epoch from current_setting('statement_timeout')::interval)::float8")
    try:
        *_, seconds = connection.execute(settings + limit, prepare=False).fetchall()[0]
    except BaseException:
        connection.close()
        raise
    connection.silence_seconds = seconds + min(seconds, _GRACE_SECONDS) if seconds else None


#: A statement that this session has not prepared, or that another client of its server connection has.
_STRANGE_PREPARED = ("42P05", "26000")


def describe_error(error: Exception) -> str:
    """What an error says, and what it most likely means where that is not obvious."""
    text = str(error).strip()
    if getattr(error, "sqlstate", None) in _STRANGE_PREPARED:
        text += (
            " (it looks as if a pooler in transaction mode stood before the server: set PGBROKER['TRANSACTION_POOLER'] "
            "to True, or connect directly)"
        )
    return text
