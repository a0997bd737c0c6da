"""Run every examination, each by itself. Called by ``pgbroker_doctor``."""

from collections.abc import Callable
from dataclasses import dataclass

import psycopg
from django.db import DatabaseError

from django_pgbroker.conf import get_settings
from django_pgbroker.operations.doctor import history, schema, server, sessions, tables, workers
from django_pgbroker.operations.doctor.finding import SEVERITY, Finding, Level, Subject
from django_pgbroker.operations.installation import require_installed
from django_pgbroker.runtime.connections import open_gateway

#: The doctor itself shall hold up nobody.
_TIMEOUTS = {"statement_timeout": "10s", "lock_timeout": "1s"}

#: What is examined, by topic, in the order of the report.
EXAMINATIONS: dict[str, Callable[[Subject], Finding]] = {
    "migrations": schema.examine_migrations,
    "indexes": schema.examine_indexes,
    "claim_plan": schema.examine_claim_plan,
    "workers": workers.examine_workers,
    "duties": workers.examine_duties,
    "unknown_types": workers.examine_unknown_types,
    "untaken_types": workers.examine_untaken_types,
    "clocks": workers.examine_clocks,
    "horizon": sessions.examine_horizon,
    "dead_rows": tables.examine_dead_rows,
    "lock_waits": sessions.examine_lock_waits,
    "connections": sessions.examine_connections,
    "sizes": tables.examine_sizes,
    "partitions": history.examine_partitions,
    "default_partitions": history.examine_default_partitions,
    "retention": history.examine_retention,
    "wraparound": tables.examine_wraparound,
    "notify_queue": server.examine_notify_queue,
    "replication_slots": server.examine_replication_slots,
    "server_settings": server.examine_server_settings,
    "rights": server.examine_rights,
}


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All findings by topic, in the order of the report."""

    findings: dict[str, Finding]

    @property
    def level(self) -> Level:
        """The worst level among the findings; what could not be seen counts as good."""
        worst = max((finding.level for finding in self.findings.values()), key=SEVERITY.index)
        return Level.OK if worst is Level.UNSEEN else worst


def examine(using: str | None = None) -> Diagnosis:
    """Look at everything. Changes nothing, locks nothing for long, and goes on where one look fails.

    Args:
        using: alias of the database; by default ``PGBROKER["DATABASE"]``.

    Raises:
        ConfigurationError: there is no such alias, it is not PostgreSQL, or our tables are not in it.
        django.db.DatabaseError, psycopg.Error: the database is away.
    """
    database = using or get_settings().database
    require_installed(database)
    gateway = open_gateway(database, "doctor", **_TIMEOUTS)
    try:
        subject = Subject(database, gateway)
        return Diagnosis({topic: _look(look, subject) for topic, look in EXAMINATIONS.items()})
    finally:
        gateway.connection.close()


def _look(look: Callable[[Subject], Finding], subject: Subject) -> Finding:
    try:
        return look(subject)
    except (psycopg.Error, DatabaseError) as error:
        if subject.gateway.connection.closed:
            raise
        text = str(error).strip() or type(error).__name__
        return Finding(
            Level.UNSEEN,
            f"Could not be seen: {text.splitlines()[0]}.",
            "Run the doctor as the role of the workers, or as the owner of the tables.",
        )
