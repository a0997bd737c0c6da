"""A form from a signature, and arguments from a form: what goes in comes out, and what is wrong is named."""

import json
from datetime import datetime
from typing import Annotated, Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from django_pgbroker import InvalidArguments
from django_pgbroker.operations.enqueue_form import (
    OTHER_ARGUMENTS,
    FieldKind,
    list_fields,
    read_arguments,
)
from django_pgbroker.registry import JobType


def handle(  # noqa: PLR0917
    title: str,
    count: int,
    price: Annotated[float, []],
    urgent: bool,
    colour: Literal["red", "green", 3],
    when: datetime,
    items: list[int],
    extra: dict[str, int],
    thing,
    note: str | None = None,
    size: int | str = 1,
    ctx: Any = None,
) -> None: ...


def handle_anything(first: int = 1, **others: object) -> None: ...


KNOWN = JobType("tests.form", handle)
OPEN = JobType("tests.open", handle_anything)

FULL = {
    "title": "a", "count": "-3", "price": "1.5", "urgent": "true", "colour": "green", "when": "2026-01-01",
    "items": "[1, 2]", "extra": '{"a": 1}', "thing": "null",
}  # fmt: skip


def test_each_annotation_has_its_kind_of_field():
    kinds = {field.name: field.kind for field in list_fields(KNOWN)}
    assert kinds == {
        "title": FieldKind.TEXT,
        "count": FieldKind.WHOLE,
        "price": FieldKind.NUMBER,
        "urgent": FieldKind.FLAG,
        "colour": FieldKind.CHOICE,
        "when": FieldKind.TEXT,
        "items": FieldKind.JSON,
        "extra": FieldKind.JSON,
        "thing": FieldKind.JSON,
        "note": FieldKind.TEXT,
        "size": FieldKind.JSON,
    }


def test_only_arguments_without_default_are_required():
    assert [field.name for field in list_fields(KNOWN) if not field.is_required] == ["note", "size"]


def test_a_form_is_read_into_arguments_and_empty_fields_are_left_out():
    read = read_arguments(list_fields(KNOWN), FULL | {"note": "", "size": '"L"'})

    assert read == {
        "title": "a", "count": -3, "price": 1.5, "urgent": True, "colour": "green", "when": "2026-01-01",
        "items": [1, 2], "extra": {"a": 1}, "thing": None, "size": "L",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("title", ""), ("count", "1.5"), ("count", "x"), ("price", "x"), ("urgent", "maybe"), ("colour", "blue"),
        ("items", "[1"), ("thing", "not quoted"), ("thing", "[" * 100_000),
    ],
)  # fmt: skip
def test_a_text_that_its_field_does_not_take_is_named(name: str, text: str):
    with pytest.raises(InvalidArguments) as caught:
        read_arguments(list_fields(KNOWN), FULL | {name: text})
    assert caught.value.argument == name


def test_a_handler_of_any_arguments_takes_a_json_object_of_them():
    fields = list_fields(OPEN)
    assert [field.name for field in fields] == ["first", OTHER_ARGUMENTS]

    assert read_arguments(fields, {"first": "2", OTHER_ARGUMENTS: '{"more": [1]}'}) == {"first": 2, "more": [1]}
    with pytest.raises(InvalidArguments, match="must be an object"):
        read_arguments(fields, {OTHER_ARGUMENTS: "[1]"})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from([*KNOWN.signature.names, "gone", "ctx"]), json_values))
def test_stored_arguments_come_back_unchanged_whatever_they_are(stored: dict[str, Any]):
    fields = list_fields(KNOWN, stored)
    missing = {field.name: FULL[field.name] for field in fields if field.is_required and field.name not in stored}
    shown = {field.name: field.initial for field in fields if field.initial is not None}

    read = read_arguments(fields, missing | shown)

    assert json.dumps({name: read[name] for name in stored}, sort_keys=True) == json.dumps(stored, sort_keys=True)
