"""B072: a server that speaks another language. Decisions rest on SQLSTATE, texts are only passed on.

The locales of a server cannot be counted on, so a function that the statements call raises the server's errors with
foreign texts, as its own would be.
"""

import ast
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.contrib.auth.models import Group
from django.db import OperationalError, transaction

import django_pgbroker
from django_pgbroker import BrokerDatabaseError, EnqueueConflict
from django_pgbroker.domain.states import JobState
from django_pgbroker.models import ArchivedJob, Execution
from tests.maintenance.waiting import wait_until

PACKAGE = Path(django_pgbroker.__file__).parent

#: What a German, a French and a Japanese server would say, and something that no terminal shows.
TEXTS = [
    "Verklemmung: „Prozeß“ wartet",
    "interblocage détecté",
    "デッドロックを検出しました",
    "\x1b[31m%s %(x)s",
]


@contextmanager
def failing_clock(rows, sqlstate, text):
    """Every statement that asks for the time fails so."""
    original = rows.one("select pg_get_functiondef('pgbroker.clock()'::regprocedure)")
    rows.run(
        "create or replace function pgbroker.clock() returns timestamptz language plpgsql stable as $f$"
        f" begin raise exception using errcode = '{sqlstate}', message = $t${text.replace('%', '%%')}$t$; end $f$"
    )
    try:
        yield
    finally:
        rows.gateway.connection.execute(original.encode(), prepare=False)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize(
    ("sqlstate", "error", "advice"),
    [
        ("40001", EnqueueConflict, "run the transaction again"),
        ("40P01", EnqueueConflict, "run the transaction again"),
        ("55P03", EnqueueConflict, "run the transaction again"),
        ("23505", BrokerDatabaseError, ""),
        ("42P01", BrokerDatabaseError, "manage.py migrate"),
    ],
)
def test_b072_an_enqueue_that_fails_is_the_same_error_in_every_language_and_keeps_its_text(  # noqa: PLR0917
    declare, rows, sqlstate, error, advice, text
):
    noop = declare("tests.noop")(lambda: 1)
    noop.enqueue()
    with transaction.atomic():
        with failing_clock(rows, sqlstate, text), pytest.raises(error) as raised:
            noop.enqueue()
        Group.objects.create(name="kept")
    assert type(raised.value) is error
    assert raised.value.sqlstate == sqlstate
    assert text in str(raised.value)
    assert advice in str(raised.value)
    assert isinstance(raised.value, OperationalError) == (error is EnqueueConflict)
    assert Group.objects.count() == 1


@pytest.mark.parametrize("sqlstate", ["40001", "40P01", "57P01", "55P03"])
def test_b072_a_worker_whose_turns_fail_in_another_language_tries_again(  # noqa: PLR0917
    declare,
    start,
    gate,
    rows,
    caplog,
    sqlstate,
):
    """Its claims and its acknowledges; what it had to record is recorded once the server is well again."""

    @declare()
    def slow():
        gate.wait()
        return "kept"

    handle = slow.enqueue()
    with caplog.at_level(logging.INFO, "django_pgbroker"):
        worker = start(concurrency=1)
        gate.wait_until_arrived()
        with failing_clock(rows, sqlstate, TEXTS[2]):
            gate.open()
            wait_until(
                lambda: any(getattr(record, "event", "") == "worker.database_lost" for record in caplog.records),
                "the acknowledge fails",
            )
        wait_until(lambda: handle.status() is JobState.COMPLETED, "it is recorded")
        after = slow.enqueue()
        wait_until(lambda: after.status() is JobState.COMPLETED, "the next one runs")
        assert worker.lives
    assert TEXTS[2] in caplog.text
    assert (handle.result(), ArchivedJob.objects.get(pk=handle.id).attempt) == ("kept", 1)
    assert Execution.objects.count() == 2


def test_b072_the_text_of_an_error_is_stored_as_it_came(declare, run_until_empty):
    def fail():
        raise OperationalError(TEXTS[2])

    handle = declare("tests.fail", max_attempts=1)(fail).enqueue()
    run_until_empty()
    assert ArchivedJob.objects.get(pk=handle.id).error_message == TEXTS[2]


_READERS = {"startswith", "endswith", "find", "index", "search", "match", "fullmatch", "findall", "count"}


def _is_message(node: ast.AST, errors: set[str]) -> bool:
    """Whether this is the text of a caught error: str(error), error.args, error.diag.message_primary, …"""
    text = ast.unparse(node)
    return any(
        text.startswith((f"str({name})", f"repr({name})", f"{name}.args", f"{name}.diag.message", f"{name}.pgerror"))
        for name in errors
    )


def decisions_on_texts(source: str) -> Iterator[str]:
    """Comparisons and searches in the texts of errors."""
    tree = ast.parse(source)
    errors = {node.name for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler) and node.name}
    errors |= {"error", "exc", "exception"}
    for node in ast.walk(tree):
        parts: list[ast.AST] = []
        if isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _READERS:
            parts = [node.func.value, *node.args]
        elif isinstance(node, ast.Match):
            parts = [node.subject]
        yield from (ast.unparse(node) for part in parts if _is_message(part, errors))


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_b072_nothing_is_decided_by_the_text_of_an_error(path):
    assert list(decisions_on_texts(path.read_text())) == []


@pytest.mark.parametrize(
    "source",
    [
        "if 'deadlock' in str(error): pass", "if str(error).startswith('dead'): pass", "re.search('dead', str(error))",
        "try: pass\nexcept E as problem:\n  if problem.args[0] == 'x': pass",
        "if error.diag.message_primary == 'x': pass", "match str(exc):\n  case 'x': pass",
    ],
)  # fmt: skip
def test_b072_the_search_above_finds_what_it_is_for(source):
    assert list(decisions_on_texts(source))
