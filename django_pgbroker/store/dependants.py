"""Unblock what waited for jobs that are now completed. Called in the worker's turn, right after the acknowledge."""

from collections.abc import Iterable
from typing import Any

import psycopg

from django_pgbroker.store.arrays import array_of_integers
from django_pgbroker.store.gateway import Gateway


def send_release_dependants(gateway: Gateway, ids: Iterable[int]) -> psycopg.Cursor[Any]:
    """Release the dependants of completed jobs; the answer is the queues that have new pending jobs.

    Args:
        gateway: the connection that acknowledged them, in the same transaction.
        ids: jobs that were archived as completed a moment ago; releasing twice is harmless.
    """
    return gateway.send("release_dependants", {"ids": array_of_integers(ids)})


def read_woken_queues(cursor: psycopg.Cursor[Any]) -> list[str]:
    """The answer of ``send_release_dependants``: names of queues."""
    return [name for (name,) in cursor.fetchall()]
