"""The handlers that are measured. Imported before Django is set up: the model exists only once it is asked for."""

import random
import time
from collections.abc import Callable
from functools import cache
from multiprocessing.connection import Connection
from typing import Any

from django.apps.registry import Apps
from django.db import models, transaction

from django_pgbroker.store.gateway import Gateway

#: 150 bytes, as a job with an address and a few ids has.
ARGUMENTS = {"recipient": "somebody@example.org", "note": "x" * 100}

ROWS = 1_000

_ROW_TABLE = "pgbroker_bench_row"

type Handler = Callable[[str, str], None]


def do_nothing(recipient: str, note: str) -> None:
    """All that is measured is the broker."""


async def do_nothing_on_the_loop(recipient: str, note: str) -> None:
    """The same as a coroutine."""


def make_orm_handler(alias: str) -> Handler:
    """A handler that reads one row of a thousand through Django's ORM and writes it, each in a transaction of its own.

    Args:
        alias: the database with the table of ``make_rows``.
    """
    rows = _row_model()._base_manager.using(alias)

    def read_and_write(recipient: str, note: str) -> None:
        row = rows.get(pk=random.randrange(ROWS))  # noqa: S311 - which one is no secret
        row.visits += 1
        row.save(using=alias, update_fields=["visits"])

    return read_and_write


def make_atomic_handler(alias: str) -> Handler:
    """The work of the ORM handler in one transaction, where no broker opens it.

    Args:
        alias: the database with the table of ``make_rows``.
    """
    read_and_write = make_orm_handler(alias)

    def read_and_write_at_once(recipient: str, note: str) -> None:
        with transaction.atomic(using=alias):
            read_and_write(recipient, note)

    return read_and_write_at_once


def make_clock_handler(pipe: Connection) -> Handler:
    """A handler that tells through ``pipe`` when it began: nanoseconds of the clock that all processes share."""

    def tell_start(recipient: str, note: str) -> None:
        pipe.send(time.monotonic_ns())

    return tell_start


def make_rows(gateway: Gateway) -> None:
    """Make the table of the ORM handler in the scratch database, where there is none yet."""
    gateway.connection.execute(
        f"create table if not exists {_ROW_TABLE} (id bigint primary key, visits bigint not null, note text not null)",
        prepare=False,
    )
    gateway.connection.execute(
        f"insert into {_ROW_TABLE} select id, 0, repeat('x', 100) from generate_series(0, %s - 1) as id "  # noqa: S608
        "on conflict do nothing",
        [ROWS],
        prepare=False,
    )
    gateway.connection.execute(f"vacuum (analyze) {_ROW_TABLE}", prepare=False)


@cache
def _row_model() -> Any:
    """In a registry of its own, as the table of migrations is in Django: no app has it, no migration is made for it."""

    class Row(models.Model):
        id = models.BigIntegerField(primary_key=True)
        visits = models.BigIntegerField()
        note = models.TextField()

        class Meta:
            apps = Apps()
            app_label = "pgbroker_bench"
            db_table = _ROW_TABLE
            managed = False

        def __str__(self) -> str:
            return f"row {self.pk}"

    return Row
