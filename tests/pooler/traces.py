"""What clients have left on the server connections of a pool."""

from contextlib import ExitStack
from typing import Any, NamedTuple

from tests.pooler.bouncer import Bouncer

#: PgBouncer gives each client its own values of these.
TRACKED = {"application_name", "client_encoding", "DateStyle", "standard_conforming_strings", "TimeZone"}


class Traces(NamedTuple):
    """What one server connection still has of its former clients."""

    settings: dict[str, str]
    role: str
    prepared: list[str]
    channels: list[str]


#: A server connection that nobody has used.
CLEAN = Traces({}, "none", [], [])


def read_traces(bouncer: Bouncer) -> dict[int, Traces]:
    """The traces on every server connection of the pool, by process id: each is held until all have been read."""
    found = {}
    with ExitStack() as held:
        for _ in range(bouncer.pool_size):
            client = held.enter_context(bouncer.connect())
            held.enter_context(client.transaction())
            found[client.execute("select pg_backend_pid()").fetchall()[0][0]] = _read(client)
    return found


def _read(client: Any) -> Traces:
    def column(query: str) -> list[Any]:
        return [row[0] for row in client.execute(query).fetchall()]

    settings = dict(client.execute("select name, setting from pg_settings where source = 'session'").fetchall())
    return Traces(
        settings={name: value for name, value in settings.items() if name not in TRACKED},
        role=column("select current_setting('role')")[0],
        prepared=column("select statement from pg_prepared_statements"),
        channels=column("select pg_listening_channels()"),
    )


def count_session_locks(client: Any) -> int:
    """Advisory locks on the server that outlive transactions: none of the broker's does."""
    query = "select count(*) from pg_locks as held join pg_stat_activity using (pid) where locktype = 'advisory'"
    return int(client.execute(f"{query} and state = 'idle'").fetchone()[0])
