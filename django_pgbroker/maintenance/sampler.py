"""Sample depth and age of the queues, so that pages and back-pressure never count."""

from django_pgbroker.maintenance.duty import Duty, Swept
from django_pgbroker.store.gateway import Gateway
from django_pgbroker.store.sampling import sample_queues


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
