"""The header of every statement says what is true: fields, parameters, legal moves, and words no statement may use."""

import re

import pytest
from django.db import connection

from django_pgbroker.domain.states import TRANSITIONS, JobState, is_legal
from django_pgbroker.store.statement import Statement, statement, statement_names

FIELDS = {"purpose", "params", "returns", "moves", "locks", "index"}

#: Legal moves that no statement makes yet, and the verb that will. An entry whose statement has come must go.
MOVES_WITHOUT_A_VERB: dict[tuple[str, str], str] = {}

_PLACEHOLDER = re.compile(r"%\((\w+)\)s")
_ASIDE = re.compile(r"\([^()]*\)")
_TYPE = re.compile(r"^(bigint|int|smallint|float8|text|boolean|bool|jsonb|timestamptz)(\[\])?$")
_GLUE = {"and", "by", "the", "same", "position"}

ALL = [pytest.param(statement(name), id=name) for name in statement_names()]


def declared_params(header: str) -> set[str]:
    """The names in a ``params`` field: what is left without asides in brackets, types and glue."""
    bare = _ASIDE.sub(" ", header)
    words = re.findall(r"[\w\[\]]+", bare)
    return {word for word in words if not _TYPE.match(word) and word not in _GLUE}


@pytest.mark.parametrize("each", ALL)
def test_a_statement_has_all_fields_of_the_header(each: Statement):
    assert set(each.header) == FIELDS
    assert each.header["purpose"]
    assert each.header["returns"]
    assert each.header["locks"] or not re.search(r"\bfor (no key )?update\b|\bupdate pgbroker", each.text)


@pytest.mark.parametrize("each", ALL)
def test_the_header_names_exactly_the_parameters_of_the_text(each: Statement):
    assert declared_params(each.header["params"]) == set(_PLACEHOLDER.findall(each.text))


@pytest.mark.parametrize("each", ALL)
def test_a_statement_moves_jobs_only_where_the_rules_allow_it(each: Statement):
    for origin, target in each.moves:
        if origin:
            assert is_legal(JobState[origin.upper()], JobState[target.upper()]), f"{origin} -> {target}"
        else:
            assert not JobState[target.upper()].is_finished


@pytest.mark.parametrize("each", ALL)
def test_a_statement_that_writes_the_state_of_a_job_declares_a_move(each: Statement):
    writes = re.search(
        r"insert into pgbroker\.(job|archived_job) \(|update pgbroker\.job\b[^_](?:(?!\bwhere\b).)*?\bstate = "
        r"|delete from pgbroker\.job\s|select pgbroker\.complete_job\(",
        each.text,
        re.DOTALL,
    )
    assert bool(writes) == bool(each.moves)


def test_every_legal_move_has_its_statement_or_stands_in_the_list_of_those_to_come():
    legal = {(origin.label, target.label) for origin, targets in TRANSITIONS.items() for target in targets}
    declared = {move for each in statement_names() for move in statement(each).moves if move[0]}

    assert legal - declared == set(MOVES_WITHOUT_A_VERB)


@pytest.mark.parametrize("state", ["pending", "scheduled"])
def test_a_job_can_begin_its_life_in(state):
    declared = {move for each in statement_names() for move in statement(each).moves}
    assert ("", state) in declared


@pytest.mark.parametrize("each", ALL)
def test_time_is_read_through_the_clock_of_the_broker_alone(each: Statement):
    """``clock_timestamp()`` measures the statement itself, and is no time of a job."""
    assert not re.search(
        r"\b(now|transaction_timestamp|statement_timestamp|timeofday)\s*\(|\b(current_timestamp|current_date|localtime\w*)\b",
        each.text,
        re.IGNORECASE,
    )


@pytest.mark.parametrize("each", ALL)
def test_no_statement_pages_by_offset(each: Statement):
    """``offset 0`` keeps the planner from flattening a lateral look-up; anything else wades."""
    assert set(re.findall(r"\boffset\s+(\S+)", each.text, re.IGNORECASE)) <= {"0"}


@pytest.mark.parametrize("each", ALL)
def test_every_table_is_named_with_its_schema(each: Statement):
    text = re.sub(r"'[^']*'", "''", each.text)
    text = re.sub(r"\bextract\s*\(\s*\w+\s+from\b|\bis (not )?distinct from\b|\bdo update\b|\bupdate skip\b", " ", text)
    subqueries = set(re.findall(r"(\w+)(?:\s*\([^()]*\))?\s+as\s+(?:not\s+)?(?:materialized\s*)?\(", text))
    read = re.findall(r"\b(?:from|join)\s+(?:only\s+)?([a-z_][\w.]*)\b(?!\s*\()", text)
    written = re.findall(r"\b(?:update|into)\s+([a-z_][\w.]*)", text)
    named = {name for name in (*read, *written) if not name.startswith("pg_")} - subqueries - {"lateral"}
    unqualified = {name for name in named if "." not in name}
    assert not unqualified
    assert all(name.startswith("pgbroker.") for name in named if "." in name)


@pytest.mark.parametrize("each", ALL)
def test_the_index_of_the_header_exists_or_the_field_says_why_there_is_none(each: Statement, db):
    if each.header["index"].startswith("the catalogue"):
        return
    with connection.cursor() as cursor:
        cursor.execute("select indexname from pg_indexes where schemaname = 'pgbroker'")
        existing = {name for (name,) in cursor.fetchall()}
    assert set(filter(None, each.header["index"].split(", "))) <= existing
