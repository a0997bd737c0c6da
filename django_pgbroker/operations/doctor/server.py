"""Examine the server: settings that jobs rely on, slots, the NOTIFY queue, rights. Listed in ``examination``."""

from django_pgbroker.domain.sizes import describe_bytes
from django_pgbroker.operations.doctor.finding import SEVERITY, Finding, Level, Subject, judge
from django_pgbroker.store.doctor import ServerFigures, inspect_server, inspect_slots

_KEPT_WARNING = 10 * 1024**3
_KEPT_ALARM = 100 * 1024**3


def examine_server_settings(subject: Subject) -> Finding:
    """Whether a committed job survives a crash, and whether the tables are kept clean."""
    return judge_settings(inspect_server(subject.gateway))


def judge_settings(server: ServerFigures) -> Finding:
    """The finding for these figures."""
    figures = server._asdict() | {"read_at": server.read_at.isoformat()}
    if server.is_standby:
        return Finding(
            Level.ALARM,
            "This is a standby: nothing can be enqueued or run.",
            "Name the primary in DATABASES.",
            figures,
        )
    off = [
        name
        for name, value in (
            ("fsync", server.fsync),
            ("full_page_writes", server.full_page_writes),
            ("autovacuum", server.autovacuum),
            ("track_counts", server.track_counts),
        )
        if value != "on"
    ]
    if off:
        return Finding(
            Level.ALARM,
            f"PostgreSQL {server.version}, {' and '.join(off)} off.",
            "Switch it on: without fsync or full_page_writes a crash of the machine loses jobs or the whole database, "
            "without autovacuum and track_counts the live table swells until claims crawl.",
            figures,
        )
    if server.synchronous_commit == "off":
        return Finding(
            Level.WARNING,
            f"PostgreSQL {server.version}, synchronous_commit off.",
            "A crash loses the jobs and verdicts of the last instants, although their commits were answered. Set it to "
            "on for this database or role.",
            figures,
        )
    return Finding(Level.OK, f"PostgreSQL {server.version}: commits are durable, autovacuum is on.", figures=figures)


def examine_notify_queue(subject: Subject) -> Finding:
    """How full the server's queue of notifications is; a full one makes every NOTIFY fail."""
    return judge_notify_queue(inspect_server(subject.gateway))


def judge_notify_queue(server: ServerFigures) -> Finding:
    """The finding for these figures."""
    usage = server.notify_queue_usage
    level = judge(usage, 0.1, 0.5)
    return Finding(
        level,
        f"{usage:.1%} of the NOTIFY queue is in use.",
        ""
        if level is Level.OK
        else "A session that listens sits in a long transaction; `horizon` names it. End it. Jobs go on by polling; "
        "set LISTEN to False for the time being.",
        {"usage": usage},
    )


def examine_replication_slots(subject: Subject) -> Finding:
    """Whether a slot keeps WAL until the disk is full."""
    slots = inspect_slots(subject.gateway)
    figures = {"slots": [slot._asdict() for slot in slots]}
    if not slots:
        return Finding(Level.OK, "There is none.", figures=figures)
    dearest = slots[0]
    broken = [slot.name for slot in slots if slot.wal_status in ("unreserved", "lost")]
    level = max(
        judge(dearest.kept_bytes, _KEPT_WARNING, _KEPT_ALARM),
        Level.WARNING if broken else Level.OK,
        key=SEVERITY.index,
    )
    use = "in use" if dearest.is_active else "not in use"
    return Finding(
        level,
        f"{len(slots)} slots; {dearest.name} ({use}) keeps {describe_bytes(dearest.kept_bytes)} of WAL"
        + (f"; lost or about to be: {', '.join(broken)}." if broken else "."),
        ""
        if level is Level.OK
        else "Start its consumer again, or, if that is gone for good: SELECT pg_drop_replication_slot(name); and set "
        "max_slot_wal_keep_size.",
        figures,
    )


def examine_rights(subject: Subject) -> Finding:
    """Whether this role sees enough for the other findings to be complete."""
    server = inspect_server(subject.gateway)
    figures = {"role": server.role, "sees_all": server.sees_all}
    if server.sees_all:
        return Finding(Level.OK, f"The role {server.role} sees all sessions.", figures=figures)
    return Finding(
        Level.UNSEEN,
        f"The role {server.role} does not see since when sessions of other roles are in their transactions.",
        f'GRANT pg_read_all_stats TO "{server.role}"; it lets the role read statistics, and no data.',
        figures,
    )
