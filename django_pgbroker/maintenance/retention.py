"""Drop the history that is older than ``RETENTION_DAYS``. Run by workers, the reaper and ``pgbroker_retention``."""

import psycopg
from psycopg.errors import LockNotAvailable

from django_pgbroker import telemetry
from django_pgbroker.conf import get_settings
from django_pgbroker.maintenance.duty import Duty, Swept
from django_pgbroker.store.gateway import Gateway
from django_pgbroker.store.retention import OldPartition, drop_partition, find_old_partitions, prune_default_rows

#: The other duties come in between when there is a long past to drop.
_PARTITIONS_A_TICK = 8


class Retention(Duty):
    """Whole partitions; dead letters have one that is not by time, so no age removes them."""

    name = "retention"
    interval_seconds = 600
    batch_size = 5000
    # Dropping holds up acknowledges: each partition is committed by itself, never held for the next one.
    in_transaction = False

    def tick(self, gateway: Gateway, batch: int) -> Swept:
        """Drop a handful of old partitions, and up to ``batch`` old rows of each default partition.

        Raises:
            psycopg.Error: the last partition that could not go, after the others have gone.
        """
        days = get_settings().retention_days
        if days is None:
            return Swept(0)
        old = find_old_partitions(gateway, days)
        dropped, refusal = _drop(gateway, old[:_PARTITIONS_A_TICK], days)
        # last: a default partition that has taken a whole history may be too long to be read in time
        pruned = prune_default_rows(gateway, days, batch)
        if refusal is not None:
            raise refusal
        return Swept(pruned + dropped, has_more=pruned >= batch or len(old) > _PARTITIONS_A_TICK)


def _drop(gateway: Gateway, partitions: list[OldPartition], days: int) -> tuple[int, psycopg.Error | None]:
    """How many went, and why one of them could not."""
    dropped = 0
    refusal: psycopg.Error | None = None
    for partition in partitions:
        try:
            if drop_partition(gateway, partition, days):
                dropped += 1
                _tell(partition, days)
        except LockNotAvailable as error:
            # the next try is the runner's, after a while: acknowledges shall not be held up again and again
            return dropped, refusal or error
        except psycopg.Error as error:
            if gateway.connection.closed:
                raise
            refusal = error
    return dropped, refusal


def _tell(partition: OldPartition, days: int) -> None:
    telemetry.info(
        "retention.dropped",
        "a partition of the history was dropped",
        partition=partition.name,
        until=partition.upper,
        rows=partition.rows,
        bytes=partition.bytes,
        retention_days=days,
    )
