"""Send the word that queues have work. Called by the announcer."""

from collections.abc import Iterable

from django_pgbroker.store.arrays import array_of_texts
from django_pgbroker.store.gateway import Gateway


def notify_queues(gateway: Gateway, channel: str, queues: Iterable[str]) -> None:
    """Notify ``channel`` once for each queue, with the queue's name as payload.

    Raises:
        psycopg.Error: as the server answered; nobody was notified.
    """
    gateway.send("notify_queues", {"channel": channel, "queues": array_of_texts(queues)})
