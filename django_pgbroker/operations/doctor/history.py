"""Examine the partitions of the history: enough ahead, none stranded, none overdue. Listed in ``examination``."""

from collections.abc import Iterable
from datetime import datetime

from django_pgbroker.conf import get_settings
from django_pgbroker.domain.sizes import describe_bytes
from django_pgbroker.operations.doctor.finding import Finding, Level, Subject
from django_pgbroker.store.doctor import inspect_server
from django_pgbroker.store.partitions import Partition, list_partitions
from django_pgbroker.store.retention import DEFAULT_ROWS_BOUND, count_default_rows, find_old_partitions

_PARENTS = ("archived_job_finished", "execution")

#: Every look-up by id visits all of them and locks four relations in each.
_MANY_PARTITIONS = 60

#: Retention comes every ten minutes; days later it has a reason not to get through.
_OVERDUE_DAYS = 2


def examine_partitions(subject: Subject) -> Finding:
    """Whether the present and the coming days have partitions, and how many there are."""
    now = inspect_server(subject.gateway).read_at
    partitions = list_partitions(subject.gateway)
    ahead = {parent: _days_ahead(partitions, parent, now) for parent in _PARENTS}
    counts = {parent: sum(each.parent == parent for each in partitions) for parent in _PARENTS}
    figures = {"days_ahead": ahead, "partitions": counts}
    lowest, most = min(ahead.values()), max(counts.values())
    summary = f"{lowest:.1f} days ahead, {most} a table."
    if lowest < get_settings().partition_days_ahead - 1:
        return Finding(
            Level.ALARM if lowest < 1 else Level.WARNING,
            summary,
            "No process makes partitions, or it may not. Run manage.py pgbroker_reaper --once and read its error; its "
            "role must own the tables. See `duties`.",
            figures,
        )
    if most > _MANY_PARTITIONS:
        return Finding(
            Level.WARNING,
            f"{summary} Every look-up by id visits each of them.",
            "Lower RETENTION_DAYS, or choose a longer PARTITION_PERIOD; 40 are comfortable.",
            figures,
        )
    return Finding(Level.OK, summary, figures=figures)


def examine_default_partitions(subject: Subject) -> Finding:
    """Whether rows landed where no partition was ready for them."""
    found = count_default_rows(subject.gateway, get_settings().retention_days)
    total = sum(each.rows for each in found)
    figures = {each.parent: each.rows for each in found}
    if not total:
        return Finding(Level.OK, "The default partitions are empty.", figures=figures)
    bounded = " or more" if any(each.rows >= DEFAULT_ROWS_BOUND for each in found) else ""
    return Finding(
        Level.ALARM,
        f"{total:,}{bounded} rows are in a default partition: no partition was ready for them.",
        "See `partitions`; the partitioner moves them with its next partition (manage.py pgbroker_reaper --once). Rows "
        "with dates far off come from a server clock that was wrong: delete them by hand.",
        figures,
    )


def examine_retention(subject: Subject) -> Finding:
    """Whether history goes when its time has come."""
    days = get_settings().retention_days
    if days is None:
        return Finding(Level.OK, "RETENTION_DAYS is None: history is kept for ever.", figures={"retention_days": None})
    overdue = find_old_partitions(subject.gateway, days + _OVERDUE_DAYS)
    figures = {"retention_days": days, "overdue": [partition.name for partition in overdue]}
    if not overdue:
        return Finding(Level.OK, f"No partition is overdue; history goes after {days} days.", figures=figures)
    return Finding(
        Level.WARNING,
        f"{len(overdue)} partitions ({describe_bytes(sum(each.bytes for each in overdue))}) should be gone, the oldest "
        f"is {overdue[0].name}.",
        "Run manage.py pgbroker_retention: it says what stands in the way (a long reader, a view, the owner). "
        "See `duties`.",
        figures,
    )


def _days_ahead(partitions: Iterable[Partition], parent: str, now: datetime) -> float:
    """How far the partitions reach from now on without a gap."""
    reach = now
    for each in sorted(
        (each for each in partitions if each.parent == parent and not each.is_default),
        key=lambda each: each.lower.timestamp() if each.lower else float("-inf"),
    ):
        if (each.lower is None or each.lower <= reach) and (each.upper is None or each.upper > reach):
            reach = each.upper or datetime.max.replace(tzinfo=now.tzinfo)
    return (reach - now).total_seconds() / 86_400
