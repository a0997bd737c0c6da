"""Whether a worker is alive, judged by its heartbeat. Used by the overview and the screens."""

from collections.abc import Mapping
from enum import StrEnum

#: A worker that missed this many heartbeats is taken for dead. Its jobs come back by their own leases, never by this.
LOST_AFTER_HEARTBEATS = 5


class Presence(StrEnum):
    """What is known about a worker process."""

    ALIVE = "alive"
    DRAINING = "draining"
    LOST = "lost"
    STOPPED = "stopped"


def judge_presence(
    heartbeat_age_seconds: float,
    heartbeat_seconds: float,
    *,
    has_stopped: bool,
    is_draining: bool,
    stop_reason: str | None = None,
) -> Presence:
    """The presence of one worker.

    Args:
        heartbeat_age_seconds: how long ago it last reported, by the database's clock.
        heartbeat_seconds: how often it promised to report.
        has_stopped: it, or the presence duty, has recorded its end.
        is_draining: it finishes what runs, or was asked to drain or to stop.
        stop_reason: the recorded reason of its end; the presence duty writes ``lost``.
    """
    if has_stopped:
        return Presence.LOST if stop_reason == Presence.LOST else Presence.STOPPED
    if heartbeat_age_seconds > heartbeat_seconds * LOST_AFTER_HEARTBEATS:
        return Presence.LOST
    return Presence.DRAINING if is_draining else Presence.ALIVE


def describe_queues(queues: object) -> str:
    """The queues that a worker serves, as it was told on its command line: ``critical:5, default``.

    Args:
        queues: name to weight, as the worker's row holds them.
    """
    if isinstance(queues, Mapping):
        return ", ".join(name if weight == 1 else f"{name}:{weight}" for name, weight in queues.items())
    if isinstance(queues, list | tuple):
        return ", ".join(str(name) for name in queues)
    return str(queues)
