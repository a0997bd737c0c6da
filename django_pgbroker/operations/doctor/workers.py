"""Examine the worker processes and what they leave undone. Listed in ``examination``."""

from django_pgbroker.domain.durations import describe_age
from django_pgbroker.domain.presence import Presence
from django_pgbroker.models import Worker
from django_pgbroker.operations.databases import open_caller_gateway
from django_pgbroker.operations.doctor.finding import Finding, Level, Subject, judge
from django_pgbroker.operations.overview import UNKNOWN_TYPES_BATCH, QueueOverview, read_overview
from django_pgbroker.store.overview import find_untaken_types

#: A clock that is off by less is off by the way to the database.
_SKEW_WARNING_SECONDS = 2.0
_SKEW_ALARM_SECONDS = 60.0


def examine_workers(subject: Subject) -> Finding:
    """Whether workers live, and whether some went silent within the last hour."""
    overview = read_overview(subject.database)
    lost = [worker for worker in overview.workers if worker.presence is Presence.LOST]
    live = len(overview.workers) - len(lost)
    waiting = any(queue.pending for queue in overview.queues)
    figures = {
        "live": live,
        "lost": [{"id": w.id, "name": w.name, "hostname": w.hostname, "process_id": w.process_id} for w in lost],
    }
    if not live:
        return Finding(
            Level.ALARM if waiting else Level.WARNING,
            "No worker lives" + (", and jobs wait." if waiting else "."),
            "Start one: manage.py pgbroker_worker.",
            figures,
        )
    if lost:
        latest = min(lost, key=lambda worker: worker.heartbeat_seconds_ago)
        return Finding(
            Level.WARNING,
            f"{live} live; {len(lost)} went silent within the last hour, the latest {latest.name} "
            f"({latest.hostname}:{latest.process_id}) {describe_age(latest.heartbeat_seconds_ago)}.",
            "Their jobs come back by themselves. Look at that machine's log: killed for its memory (OOM), cut off, "
            "or stopped by force?",
            figures,
        )
    return Finding(Level.OK, f"{live} live, none lost within the last hour.", figures=figures)


def examine_duties(subject: Subject) -> Finding:
    """Whether some process runs the duties: the depths that they sample are fresh."""
    queues = read_overview(subject.database).queues
    stale = [queue.name for queue in queues if queue.is_stale]
    figures = {"stale_queues": stale}
    if not queues:
        return Finding(Level.OK, "No queue yet, so nothing to look after.", figures=figures)
    if len(stale) == len(queues):
        return Finding(
            Level.ALARM if any(_holds_jobs(queue) for queue in queues) else Level.WARNING,
            "No process runs the duties: no queue was sampled lately. Lapsed leases and delayed jobs wait.",
            "Start a worker without --no-maintenance, or manage.py pgbroker_reaper and pgbroker_scheduler.",
            figures,
        )
    if stale:
        return Finding(
            Level.WARNING,
            f"{len(stale)} of {len(queues)} queues were not sampled lately: the duties lag behind.",
            "Look for maintenance.failed in the workers' log, and at `lock_waits`.",
            figures,
        )
    return Finding(Level.OK, f"{len(queues)} queues were sampled lately.", figures=figures)


def examine_unknown_types(subject: Subject) -> Finding:
    """Whether jobs wait that no live worker takes."""
    unknown = read_overview(subject.database).unknown_types
    figures = {each.name: each.waiting for each in unknown}
    if not unknown:
        return Finding(Level.OK, "Live workers know the types of all waiting jobs.", figures=figures)
    return Finding(
        Level.WARNING,
        f"{sum(figures.values()):,} jobs wait for types that no live worker takes: {', '.join(sorted(figures))}.",
        "Deploy or start a worker whose code registers them and whose --types and --exclude-types do not leave them "
        "out; or, after a rename, add the old name to `aliases` of @job.",
        figures,
    )


def examine_untaken_types(subject: Subject) -> Finding:
    """Whether jobs wait in a queue where no live worker takes their type, by its --queues or --types."""
    untaken = find_untaken_types(open_caller_gateway(subject.database), UNKNOWN_TYPES_BATCH)
    figures = {"untaken": [{"queue": each.queue, "job_type": each.name, "waiting": each.waiting} for each in untaken]}
    if not untaken:
        return Finding(Level.OK, "Every job that waits is of a type that its queue's workers take.", figures=figures)
    first = untaken[0]
    return Finding(
        Level.WARNING,
        f"No live worker takes {first.name} in the queue {first.queue}, where {first.waiting:,} such jobs wait"
        + (f"; nor {len(untaken) - 1:,} other types in their queues." if len(untaken) > 1 else "."),
        "Start a worker that serves this queue and whose --types and --exclude-types do not leave the type out.",
        figures,
    )


def examine_clocks(subject: Subject) -> Finding:
    """How far the clocks of live workers are from the database's."""
    workers = Worker.objects.using(subject.database).running().filter(clock_skew_seconds__isnull=False)
    skews = {f"{worker.name} ({worker.hostname})": worker.clock_skew_seconds or 0.0 for worker in workers}
    if not skews:
        return Finding(Level.OK, "No live worker has reported its clock.", figures={})
    worst = max(skews, key=lambda name: abs(skews[name]))
    level = judge(abs(skews[worst]), _SKEW_WARNING_SECONDS, _SKEW_ALARM_SECONDS)
    return Finding(
        level,
        f"The clock of {worst} is the furthest off: {skews[worst]:+.2f} s.",
        ""
        if level is Level.OK
        else "Start time synchronisation (chrony, ntpd) on that machine. Jobs go by the database's clock; the times "
        "that handlers write themselves are off.",
        dict(skews),
    )


def _holds_jobs(queue: QueueOverview) -> bool:
    return any((queue.pending, queue.running, queue.scheduled, queue.parked, queue.blocked))
