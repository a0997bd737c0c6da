"""Record verdicts, each behind its fencing token. Called in the worker's turn and by the reclaimer."""

import json
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import psycopg

from django_pgbroker.domain.records import AckReport, ErrorRecord, Verdict
from django_pgbroker.store.arrays import array_of_integers, array_of_numbers, array_of_texts
from django_pgbroker.store.gateway import Gateway


def send_acknowledge_jobs(
    gateway: Gateway, verdicts: Sequence[Verdict], *, lapsed: bool = False
) -> psycopg.Cursor[Any]:
    """Send the acknowledge; in a pipeline its answer arrives with the transaction's end. See ``acknowledge_jobs``."""
    ids, tokens, outcomes, next_states, delays, run_microseconds, results, errors, reasons, _ = zip(
        *sorted(verdicts, key=itemgetter(0)), strict=True
    )
    return gateway.send(
        "acknowledge_jobs",
        {
            "ids": array_of_integers(ids),
            "tokens": array_of_integers(tokens),
            "outcomes": array_of_integers(outcomes),
            "next_states": array_of_integers(next_states),
            "delays": array_of_numbers(delays),
            "run_microseconds": array_of_integers(run_microseconds),
            "results": array_of_texts(results),
            "errors": array_of_texts([error and _encode_error(error) for error in errors]),
            "reasons": array_of_texts(reasons),
            "lapsed": lapsed,
        },
    )


def read_ack_report(cursor: psycopg.Cursor[Any]) -> AckReport:
    """The answer of an acknowledge."""
    rows = cursor.fetchall()
    return AckReport(
        busy=frozenset(job_id for job_id, answer in rows if answer == "busy"),
        stale=frozenset(job_id for job_id, answer in rows if answer == "stale"),
    )


def acknowledge_jobs(gateway: Gateway, verdicts: Sequence[Verdict], *, lapsed: bool = False) -> AckReport:
    """Record what became of claimed jobs: history, archive or back to the queue, counters.

    Args:
        gateway: a connection of the broker's own.
        verdicts: at least one, one a job.
        lapsed: only where the lease is over, asked under the lock (for the reclaimer).

    Returns:
        The exceptions: ``busy`` ones are still ours and can be tried again, ``stale`` ones changed nothing.

    Raises:
        psycopg.DataError: a verdict holds what PostgreSQL cannot store; nothing was recorded.
        psycopg.OperationalError: the database is away.
    """
    return read_ack_report(send_acknowledge_jobs(gateway, verdicts, lapsed=lapsed))


def _encode_error(error: ErrorRecord) -> str:
    return json.dumps(
        {
            "class": error.error_class,
            "message": error.message,
            "traceback": error.traceback,
            "fingerprint": error.fingerprint,
        }
    )
