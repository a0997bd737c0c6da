"""Store how far running jobs are, behind their fencing tokens. Called in the worker's turn."""

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import psycopg

from django_pgbroker.domain.progress import ProgressReport
from django_pgbroker.store.arrays import array_of_integers, array_of_numbers, array_of_texts
from django_pgbroker.store.gateway import Gateway


def send_record_progress(gateway: Gateway, reports: Sequence[ProgressReport]) -> psycopg.Cursor[Any]:
    """Store the newest progress of claimed jobs; in a pipeline the answer arrives with the transaction's end.

    ``acknowledge.read_ack_report`` reads it: ``busy`` ones can be tried again, ``stale`` ones changed nothing.

    Args:
        gateway: a connection of the broker's own.
        reports: at least one, one a job.
    """
    ids, tokens, told = zip(*sorted(reports, key=itemgetter(0)), strict=True)
    return gateway.send(
        "record_progress",
        {
            "ids": array_of_integers(ids),
            "tokens": array_of_integers(tokens),
            "dones": array_of_numbers(progress and progress.done for progress in told),
            "totals": array_of_numbers(progress and progress.total for progress in told),
            "stages": array_of_texts(progress and progress.stage for progress in told),
        },
    )
