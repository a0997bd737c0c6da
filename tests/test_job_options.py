"""The page of the options of a job says what the code does: every name, default and bound."""

import inspect
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from django_pgbroker import (
    Cancel,
    ConfigurationError,
    InvalidName,
    InvalidOption,
    JobContext,
    Retry,
    Snooze,
    aenqueue,
    enqueue,
    job,
)
from django_pgbroker.conf import Settings
from django_pgbroker.domain.options import JobOptions
from django_pgbroker.operations.enqueue import decide
from django_pgbroker.operations.job_types import DeclaredJob
from django_pgbroker.registry import JobType, registry
from tests.worker.claims import make_claim
from tests.worker.links import make_loose_context

PAGE = Path(__file__).resolve().parents[1] / "docs/reference/jobs.md"
DECLARED, GIVEN, HANDLE, CONTEXT, DIRECTIVES = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]
REFUSED = (ConfigurationError, InvalidName, InvalidOption)


def table(section: str) -> dict[str, list[str]]:
    """Option to its default and its bounds."""
    rows = (line.strip("| ").split("|") for line in section.splitlines() if re.match(r"\| `\w+` \|", line))
    return {row[0].strip("` "): [row[1].strip(), row[2].strip()] for row in rows}


def keywords(function: Callable[..., Any]) -> list[str]:
    return [name for name, each in inspect.signature(function).parameters.items() if each.kind is each.KEYWORD_ONLY]


def bounded(section: str) -> list[tuple[str, str]]:
    return [(name, bounds) for name, (_, bounds) in table(section).items() if bounds]


def values(bounds: str) -> tuple[list[Any], list[Any]]:
    """The values at the bounds, and those just beyond."""
    found = re.fullmatch(r"(-?[\d,]+) to ([\d,]+)( characters)?", bounds)
    assert found, bounds
    low, high = (int(bound.replace(",", "")) for bound in found.groups()[:2])
    if found.group(3):
        return ["x" * low, "x" * high], ["x" * (low - 1), "x" * (high + 1)]
    return [low, high], [low - 1, high + 1]


def declare(**options: Any) -> JobType:
    declared = job("tests.options.declared", **options)(lambda: None)
    registry._by_name.pop("tests.options.declared")
    return declared


def test_the_page_lists_the_options_of_a_job_type_in_their_order():
    assert list(table(DECLARED)) == keywords(job)


def test_the_page_lists_the_options_of_a_job_in_their_order_which_are_the_same_everywhere():
    assert list(table(GIVEN)) == keywords(DeclaredJob.using) == keywords(enqueue) == keywords(aenqueue)


def test_the_defaults_of_a_job_type_are_those_of_the_page():
    for name, (default, _) in table(DECLARED).items():
        in_code = inspect.signature(job).parameters[name].default
        if name in ("statement_timeout", "lock_timeout", "heartbeat_timeout", "max_interruptions", "executor"):
            assert (default, in_code) == ("none", None)
        else:
            assert default == (f"`{setting_for(name)}`" if in_code is None else f"`{in_code!r}`")


def setting_for(name: str) -> str:
    return {"timeout": "DEFAULT_TIMEOUT_SECONDS"}.get(name, f"DEFAULT_{name.upper()}")


@pytest.mark.parametrize(
    ("setting", "value", "attribute"),
    [
        ("default_queue", "other", "queue"),
        ("default_priority", 7, "priority"),
        ("default_max_attempts", 7, "max_attempts"),
        ("default_timeout_seconds", 7, "timeout_seconds"),
    ],
)
def test_what_neither_the_call_nor_the_job_type_says_is_the_setting_that_the_page_names(setting, value, attribute):
    assert f"`{setting.upper()}`" in DECLARED

    spec = decide(declare(), JobOptions(), replace(Settings(), **{setting: value}))

    assert getattr(spec, attribute) == value


def test_what_the_call_does_not_say_is_the_job_types_where_the_page_says_so_and_else_nothing():
    said = {"queue": "q", "priority": 3, "max_attempts": 4, "timeout": 5}
    spec = decide(declare(**said), JobOptions(), Settings())

    assert {name for name, (default, _) in table(GIVEN).items() if default == "the job type's"} == set(said)
    assert (spec.queue, spec.priority, spec.max_attempts, spec.timeout_seconds) == ("q", 3, 4, 5)
    assert table(GIVEN)["tenant"][0] == f"`{spec.tenant}`"
    nothing = [spec.available, spec.expires, spec.deadline]
    assert all(instant.seconds is None and instant.at is None for instant in nothing)
    assert (spec.correlation_id, spec.created_by) == (None, None)


@pytest.mark.parametrize(("name", "bounds"), bounded(DECLARED))
def test_a_default_of_a_job_type_may_be_at_its_bounds_and_not_beyond(name, bounds):
    allowed, refused = values(bounds)
    for value in allowed:
        declare(**{name: value})
    for value in refused:
        with pytest.raises(REFUSED):
            declare(**{name: value})


@pytest.mark.parametrize(("name", "bounds"), bounded(GIVEN))
def test_an_option_of_a_job_may_be_at_its_bounds_and_not_beyond(name, bounds):
    allowed, refused = values(bounds)
    for value in allowed:
        decide(declare(), JobOptions(**{name: value}), Settings())
    for value in refused:
        with pytest.raises(REFUSED):
            decide(declare(), JobOptions(**{name: value}), Settings())


def test_the_page_lists_all_that_a_context_has():
    made = {*vars(JobContext), *vars(make_loose_context(make_claim()))}
    own = {name for name in made if not name.startswith("_")}
    named = set(re.findall(r"`(\w+)(?:\(\))?`", " ".join(re.findall(r"^\| (`.*?) \|", CONTEXT, re.MULTILINE))))
    assert named == own


@pytest.mark.parametrize("directive", [Retry, Snooze, Cancel])
def test_the_page_shows_how_a_directive_is_written(directive):
    bare = inspect.signature(directive).replace(return_annotation=inspect.Signature.empty)
    parameters = [each.replace(annotation=each.empty) for each in bare.parameters.values()]
    shown = str(bare.replace(parameters=parameters)).replace("'", '"')
    assert f"| `{directive.__name__}{shown}` |" in DIRECTIVES
