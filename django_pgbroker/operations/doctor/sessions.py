"""Examine who is connected and who holds up whom: horizon, locks, connections. Listed in ``examination``."""

from django_pgbroker.domain.durations import describe_seconds
from django_pgbroker.operations.doctor.finding import SEVERITY, Finding, Level, Subject, judge
from django_pgbroker.store.doctor import HorizonHolder, inspect_connections, inspect_horizon, inspect_lock_waits

#: A transaction that is open for so long keeps dead rows in the way of every claim.
_OPEN_WARNING_SECONDS = 300.0
_OPEN_ALARM_SECONDS = 3600.0

#: Where the server tells no time: this many transactions have begun since.
_AGE_WARNING = 1_000_000
_AGE_ALARM = 50_000_000

_REMEDIES = {
    "session": "End it: SELECT pg_terminate_backend({holder}); and keep transactions short, or bound them by "
    "idle_in_transaction_session_timeout and statement_timeout.",
    "standby": "A query on the standby holds it by hot_standby_feedback: end the query there, or set "
    "max_standby_streaming_delay and switch the feedback off.",
    "prepared transaction": "COMMIT PREPARED or ROLLBACK PREPARED '{holder}'; nothing else ends it, a restart neither.",
    "replication slot": "If its consumer is gone for good: SELECT pg_drop_replication_slot('{holder}');",
}


def examine_horizon(subject: Subject) -> Finding:
    """Who keeps the dead rows of the hot tables from being removed, and since when."""
    holders = inspect_horizon(subject.gateway)
    figures = {"holders": [holder._asdict() for holder in holders]}
    if not holders:
        return Finding(Level.OK, "Nobody holds an old snapshot.", figures=figures)
    worst = max(holders, key=lambda holder: (SEVERITY.index(_judge_holder(holder)), holder.transaction_age))
    level = _judge_holder(worst)
    since = "" if worst.open_seconds is None else f" open for {describe_seconds(worst.open_seconds)},"
    state = f", {worst.state}" if worst.state else ""
    return Finding(
        level,
        f"The oldest is the {worst.kind} {worst.holder} ({worst.who}{state}),{since} "
        f"{worst.transaction_age:,} transactions old.",
        "" if level is Level.OK else _REMEDIES[worst.kind].format(holder=worst.holder),
        figures,
    )


def examine_lock_waits(subject: Subject) -> Finding:
    """Whether sessions wait for locks around the broker's tables, and for whom."""
    waits = inspect_lock_waits(subject.gateway)
    figures = {"waits": [wait._asdict() for wait in waits]}
    if not waits:
        return Finding(Level.OK, "No session waits for a lock on our tables.", figures=figures)
    longest = waits[0]
    level = judge(longest.seconds, 1.0, 10.0)
    return Finding(
        level,
        f"{len(waits)} sessions wait; the longest, {longest.pid} ({longest.application or 'no name'}), for "
        f"{describe_seconds(longest.seconds)} for a lock on {longest.relation or longest.kind}, behind "
        f"{', '.join(longest.blockers) or 'a prepared transaction'}.",
        ""
        if level is Level.OK
        else "Wait for the session in front, or end it: SELECT pg_terminate_backend(pid). Migrations and scripts that "
        "lock our tables need a lock_timeout.",
        figures,
    )


def examine_connections(subject: Subject) -> Finding:
    """How near the connections are to the server's limits."""
    found = inspect_connections(subject.gateway)
    usable = max(found.allowed - found.reserved, 1)
    shares = [found.used / usable]
    if found.allowed_here:
        shares.append(found.used_here / found.allowed_here)
    level = judge(max(shares), 0.8, 0.95)
    here = f" ({found.used_here} of {found.allowed_here} in this database)" if found.allowed_here else ""
    return Finding(
        level,
        f"{found.used} of {usable} connections are in use{here}; {found.of_broker} are the broker's own.",
        ""
        if level is Level.OK
        else "Workers need three connections each and one a slot: lower --concurrency or the number of workers, close "
        "idle clients (CONN_MAX_AGE), or raise max_connections.",
        found._asdict(),
    )


def _judge_holder(holder: HorizonHolder) -> Level:
    if holder.open_seconds is None:
        return judge(holder.transaction_age, _AGE_WARNING, _AGE_ALARM)
    return judge(holder.open_seconds, _OPEN_WARNING_SECONDS, _OPEN_ALARM_SECONDS)
