"""The arguments of a job type as fields that a person fills in, and texts as arguments. For the admin and commands."""

import json
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin
from uuid import UUID

from django_pgbroker.domain.arguments import Parameter
from django_pgbroker.domain.errors import InvalidArguments
from django_pgbroker.registry import JobType

#: Stands for the arguments of any name that a handler with ``**kwargs`` takes; no parameter can have this name.
OTHER_ARGUMENTS = "other arguments"


class FieldKind(Enum):
    """How a person gives one argument."""

    TEXT = "text"
    WHOLE = "whole number"
    NUMBER = "number"
    FLAG = "yes or no"
    CHOICE = "choice"
    JSON = "JSON"


@dataclass(frozen=True)
class ArgumentField:
    """One argument.

    Args:
        job_type: for messages.
        name: of the argument, or ``OTHER_ARGUMENTS``.
        kind: how it is given.
        is_required: whether the handler has no default for it.
        hint: what is expected, in words.
        choices: the values to choose from, for ``CHOICE``.
        initial: what the field holds at first, as a text; ``None`` leaves it empty.
    """

    job_type: str
    name: str
    kind: FieldKind
    is_required: bool
    hint: str = ""
    choices: tuple[Any, ...] = ()
    initial: str | None = None


def list_fields(job_type: JobType, stored: Mapping[str, Any] | None = None) -> tuple[ArgumentField, ...]:
    """The fields for the arguments of ``job_type``.

    Args:
        job_type: a registered one.
        stored: arguments to begin with, as for a clone; one that its field could not give back unchanged is shown as
            JSON, and one that the handler does not take stands among the other arguments, so that nothing is lost.
            Without any, fields begin with the handler's defaults where they can show them.
    """
    if stored is None:
        found = [_begin(_describe(job_type, each), each.default) for each in job_type.signature.parameters]
        stored = {}
    else:
        found = [_describe(job_type, each) for each in job_type.signature.parameters]
    filled = [_fill(field, stored[field.name]) if field.name in stored else field for field in found]
    others = {name: value for name, value in stored.items() if name not in job_type.signature.names}
    if others or job_type.signature.is_open:
        hint = "A JSON object of further arguments by name."
        field = ArgumentField(job_type.name, OTHER_ARGUMENTS, FieldKind.JSON, is_required=False, hint=hint)
        filled.append(replace(field, initial=_write_json(others)) if others else field)
    return tuple(filled)


def read_arguments(fields: tuple[ArgumentField, ...], given: Mapping[str, str]) -> dict[str, Any]:
    """The arguments that a filled-in form stands for; empty fields are left out.

    Args:
        fields: from ``list_fields``.
        given: name of a field to its text.

    Raises:
        InvalidArguments: a text is not what its field takes; ``argument`` names the field.
    """
    return dict(_read_each(fields, given))


def read_argument(field: ArgumentField, text: str) -> Any:
    """The value of one field.

    Args:
        field: from ``list_fields``.
        text: not empty.

    Raises:
        InvalidArguments: the text is not what the field takes.
    """
    try:
        return _READERS[field.kind](field, text)
    except (LookupError, ValueError, RecursionError):
        expected = f"is no {field.kind.value}"
        is_said = field.hint == f"A {field.kind.value}."
        words = expected if is_said else f"{expected}. {field.hint}".rstrip()
        raise InvalidArguments(field.job_type, field.name, words) from None


def text_of(choice: Any) -> str:
    """What a form sends for one of ``choices``."""
    return choice if isinstance(choice, str) else _write_json(choice)


def _read_each(fields: tuple[ArgumentField, ...], given: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    for field in fields:
        text = given.get(field.name, "")
        if not text:
            if field.is_required:
                raise InvalidArguments(field.job_type, field.name, "is missing and has no default")
            continue
        value = read_argument(field, text)
        if field.name != OTHER_ARGUMENTS:
            yield field.name, value
        elif isinstance(value, dict):
            yield from value.items()
        else:
            raise InvalidArguments(field.job_type, field.name, f"must be an object. {field.hint}")


def _describe(job_type: JobType, parameter: Parameter) -> ArgumentField:
    kind, hint, choices = _judge(parameter.annotation)
    return ArgumentField(job_type.name, parameter.name, kind, parameter.is_required, hint, choices)


def _judge(annotation: Any) -> tuple[FieldKind, str, tuple[Any, ...]]:
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _judge(parts[0])
    if origin in (Union, types.UnionType):
        given = [part for part in parts if part is not type(None)]
        return _judge(given[0]) if len(given) == 1 else (FieldKind.JSON, "JSON.", ())
    if origin is Literal:
        return FieldKind.CHOICE, "", parts
    if annotation in _BY_ANNOTATION:
        return *_BY_ANNOTATION[annotation], ()
    return FieldKind.JSON, _JSON_HINTS.get(origin or annotation, 'JSON; a text stands in quotes, as in "this".'), ()


def _begin(field: ArgumentField, default: Any) -> ArgumentField:
    """With the handler's default, if the field gives back just that."""
    try:
        text = None if default is None else _write(field, default)
    except (TypeError, ValueError):
        return field
    return replace(field, initial=text) if text is not None and _gives_back(field, text, default) else field


def _fill(field: ArgumentField, value: Any) -> ArgumentField:
    text = _write(field, value)
    if text is not None and _gives_back(field, text, value):
        return replace(field, initial=text)
    return replace(field, kind=FieldKind.JSON, hint="JSON.", initial=_write_json(value))


def _write(field: ArgumentField, value: Any) -> str | None:
    if field.kind is FieldKind.TEXT:
        # a field of one line would lose its lines, one of several would change how they end
        return value if isinstance(value, str) and value.isprintable() else None
    return text_of(value) if field.kind is FieldKind.CHOICE else _write_json(value)


def _gives_back(field: ArgumentField, text: str, value: Any) -> bool:
    try:
        read = read_argument(field, text) if text else None
    except InvalidArguments:
        return False
    return type(read) is type(value) and bool(read == value)


def _write_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2 if isinstance(value, dict | list) and value else None)


def _read_text(_: ArgumentField, text: str) -> str:
    return text


def _read_whole(_: ArgumentField, text: str) -> int:
    return int(text)


def _read_number(_: ArgumentField, text: str) -> float:
    return float(text)


def _read_flag(_: ArgumentField, text: str) -> bool:
    return {"true": True, "false": False}[text]


def _read_choice(field: ArgumentField, text: str) -> Any:
    return {text_of(choice): choice for choice in field.choices}[text]


def _read_json(_: ArgumentField, text: str) -> Any:
    return json.loads(text)


_READERS = {
    FieldKind.TEXT: _read_text,
    FieldKind.WHOLE: _read_whole,
    FieldKind.NUMBER: _read_number,
    FieldKind.FLAG: _read_flag,
    FieldKind.CHOICE: _read_choice,
    FieldKind.JSON: _read_json,
}

_BY_ANNOTATION: dict[Any, tuple[FieldKind, str]] = {
    str: (FieldKind.TEXT, ""),
    int: (FieldKind.WHOLE, "A whole number."),
    float: (FieldKind.NUMBER, "A number."),
    bool: (FieldKind.FLAG, ""),
    # no JSON kinds: the handler is given the text
    datetime: (FieldKind.TEXT, "A text, as in 2027-01-31T08:30:00+00:00."),
    date: (FieldKind.TEXT, "A text, as in 2027-01-31."),
    time: (FieldKind.TEXT, "A text, as in 08:30."),
    Decimal: (FieldKind.TEXT, "A text, as in 19.90."),
    UUID: (FieldKind.TEXT, "A text."),
}

_JSON_HINTS: dict[Any, str] = {
    list: "A JSON list, as in [1, 2].",
    dict: 'A JSON object, as in {"key": 1}.',
}
