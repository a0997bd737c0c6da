"""Resume queues whose pause has an end, when it has come."""

from functools import partial

from django_pgbroker import telemetry
from django_pgbroker.maintenance.duty import Duty, Swept
from django_pgbroker.store.gateway import Gateway
from django_pgbroker.store.pause import resume_due_queues


class Resumer(Duty):
    """Without any process that runs it a queue stays paused: too long is better than too short."""

    name = "resumer"
    interval_seconds = 10.0
    is_routine = True

    def tick(self, gateway: Gateway, batch: int) -> Swept:
        """Resume all that are due; there are few queues."""
        names = resume_due_queues(gateway, actor="pgbroker", source="duty", reason="the pause was to end by now")
        reports = tuple(partial(telemetry.info, "queue.resumed", "its pause was to end by now", queue=n) for n in names)
        return Swept(len(names), woken_queues=frozenset(names), reports=reports)
