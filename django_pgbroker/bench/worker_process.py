"""A worker in a fresh interpreter, as a bench starts it. Imported there before Django is set up: no models here."""

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import connection, parent_process
from typing import Any

import django
from django.db import connections

from django_pgbroker.bench.handlers import do_nothing, do_nothing_on_the_loop, make_clock_handler, make_orm_handler
from django_pgbroker.bench.scratch import JOB_TYPE, QUEUE, settings_for_bench
from django_pgbroker.maintenance.duties import DUTIES
from django_pgbroker.maintenance.runner import MaintenanceRunner
from django_pgbroker.registry import JobType, registry
from django_pgbroker.worker.options import QueueShare, WorkerOptions
from django_pgbroker.worker.session import Session
from django_pgbroker.worker.turn import TurnReport
from django_pgbroker.worker.worker import Worker

#: Registers the job type of the child processes when it is imported, here and there.
PROCESS_JOB = "django_pgbroker.bench.process_job"

#: All that come with the broker.
READY_MIDDLEWARE = [
    "django_pgbroker.middleware.LoggingMiddleware",
    "django_pgbroker.middleware.ConnectionHygieneMiddleware",
    "django_pgbroker.middleware.LocaleMiddleware",
]


@dataclass(frozen=True)
class Assignment:
    """What a worker process is told.

    Args:
        alias: of the database.
        database: the name behind the alias.
        handler: one of ``drain.HANDLERS``, or ``clock``, which tells the bench when it began.
        concurrency: slots.
        listens: whether it hears of new jobs, or polls alone.
        has_duties: whether it does the maintenance duties too.
        tells_claims: whether it tells the bench how many seconds each claim took on the server.
    """

    alias: str
    database: str
    handler: str = "noop"
    concurrency: int = 10
    listens: bool = True
    has_duties: bool = False
    tells_claims: bool = False


def run_worker(assignment: Assignment, pipe: connection.Connection) -> None:
    """Work until SIGTERM, or until the bench has died.

    Args:
        assignment: how.
        pipe: to the bench.
    """
    threading.Thread(target=_die_with_parent, daemon=True).start()
    django.setup()
    connections[assignment.alias].settings_dict["NAME"] = assignment.database
    _register(assignment, pipe)
    middleware = READY_MIDDLEWARE if assignment.handler == "middleware" else []
    with settings_for_bench(LISTEN=assignment.listens, MIDDLEWARE=middleware):
        options = WorkerOptions((QueueShare(QUEUE),), assignment.concurrency, database=assignment.alias)
        worker = TellingWorker(options, pipe.send) if assignment.tells_claims else Worker(options)
        with worker.stopping.on_signals():
            _run(worker, assignment)


class TellingWorker(Worker):
    """A worker that tells the price of its claims.

    Args:
        options: how it runs.
        tell: given the seconds of each claim that found jobs, by the server's clock.
    """

    def __init__(self, options: WorkerOptions, tell: Callable[[float], None]) -> None:
        super().__init__(options)
        self._tell_claim = tell

    def _note_turn(self, session: Session, report: TurnReport, recorded: Sequence[Any]) -> None:
        for found in report.found:
            if found.claims:
                self._tell_claim(max(claim.claim_seconds for claim in found.claims))
        super()._note_turn(session, report, recorded)


def _run(worker: Worker, assignment: Assignment) -> None:
    """As ``pgbroker_worker`` does."""
    ended = threading.Event()
    runner = MaintenanceRunner(assignment.alias, DUTIES, ended, label=worker.options.name)
    if assignment.has_duties:
        runner.start()
    try:
        worker.run()
    finally:
        ended.set()
        if assignment.has_duties:
            runner.join()


def _register(assignment: Assignment, pipe: connection.Connection) -> None:
    if assignment.handler == "process":
        import_module(PROCESS_JOB)
        return
    handler = _make_handler(assignment, pipe)
    is_atomic = assignment.handler == "atomic"
    registry.register(JobType(name=JOB_TYPE, handler=handler, queue=QUEUE, is_atomic=is_atomic))


def _make_handler(assignment: Assignment, pipe: connection.Connection) -> Callable[..., Any]:
    match assignment.handler:
        case "clock":
            return make_clock_handler(pipe)
        case "orm" | "atomic":
            return make_orm_handler(assignment.alias)
        case "async":
            return do_nothing_on_the_loop
    return do_nothing


def _die_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
