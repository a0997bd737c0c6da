"""Figures that pages and back-pressure read instead of counting. Called by the sampler and the stat pruner."""

from django_pgbroker.store.gateway import Gateway

#: A sampled count that equals this bound means "this many or more".
COUNT_BOUND = 100_001

#: Pending rows looked at, in claim order, for the oldest pending time.
_HEAD = 1_000


def sample_queues(gateway: Gateway, batch: int, max_age_seconds: float) -> int:
    """Write counts by state and the oldest pending time into up to ``batch`` rows of ``queue``, and return how many.

    Args:
        gateway: a connection of the broker's own.
        batch: how many queues at most.
        max_age_seconds: queues sampled less than this ago are left alone, so many processes do the work of one.

    Raises:
        psycopg.Error: as the server answered; nothing is written.
    """
    return gateway.execute(
        "sample_queues",
        {"batch": batch, "max_age_seconds": max_age_seconds, "bound": COUNT_BOUND, "head": _HEAD},
    )


def prune_stats(gateway: Gateway, batch: int) -> int:
    """Delete up to ``batch`` counters of minutes that are seven days old, and return how many.

    Raises:
        psycopg.Error: as the server answered; nothing is deleted.
    """
    return gateway.execute("prune_stats", {"batch": batch})
