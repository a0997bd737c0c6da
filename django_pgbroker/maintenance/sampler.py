"""Sample depth and age of the queues, so that pages and back-pressure never count."""

import threading
import time

import psycopg

from django_pgbroker import telemetry
from django_pgbroker.maintenance.duty import Duty, Swept
from django_pgbroker.maintenance.runner import MaintenanceRunner
from django_pgbroker.store.gateway import Gateway
from django_pgbroker.store.sampling import sample_queues

#: A process that ends spends no more than this on its last samples.
_LAST_SECONDS = 2.0


class Sampler(Duty):
    """Bounded counts by state and the oldest pending time, written into the queue rows."""

    name = "sampler"
    interval_seconds = 5
    # A queue that is full in every state takes 0.1 to 0.2 s.
    batch_size = 10
    is_routine = True

    def tick(self, gateway: Gateway, batch: int) -> Swept:
        """Sample up to ``batch`` queues; those that another process has just sampled are left alone."""
        sampled = sample_queues(gateway, batch, max_age_seconds=self.interval_seconds * 0.8)
        return Swept(sampled, has_more=sampled >= batch)


class LastSampler(Sampler):
    """One more sample of all queues: the last one was taken while jobs still ran."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def tick(self, gateway: Gateway, batch: int) -> Swept:
        """Sample up to ``batch`` queues that were not sampled since this began."""
        age = time.monotonic() - self._began
        sampled = sample_queues(gateway, batch, max_age_seconds=age)
        return Swept(sampled, has_more=sampled >= batch and age < _LAST_SECONDS)


def leave_samples(alias: str, label: str) -> None:
    """Sample once more when a worker ends, or its last jobs would be shown as running until another process samples.

    A failure is only logged: the worker has done its work.

    Args:
        alias: a key of ``settings.DATABASES``.
        label: as ``MaintenanceRunner`` takes it.
    """
    try:
        MaintenanceRunner(alias, [LastSampler], threading.Event(), label=label).run_once()
    except psycopg.Error as error:
        telemetry.debug("maintenance.failed", f"no last sample: {error}".strip(), duty=Sampler.name)
