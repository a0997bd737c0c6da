"""Fit the arguments of a job to its handler's signature, so that a wrong call fails where it is made."""

import inspect
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

from django_pgbroker.domain.errors import ConfigurationError, InvalidArguments
from django_pgbroker.domain.names import suggest
from django_pgbroker.domain.options import OPTION_NAMES

if sys.version_info >= (3, 14):
    from annotationlib import Format

CONTEXT_ARGUMENT = "ctx"

_JSON_KINDS = (str, int, float, bool, list, dict, type(None))


class Parameter(NamedTuple):
    """One argument of a handler."""

    name: str
    is_required: bool
    annotation: object
    default: object = None


@dataclass(frozen=True)
class HandlerSignature:
    """What a handler takes, read once so that each call is checked quickly.

    Args:
        parameters: the arguments that have a name, but for the context.
        positional: the names of those that may be given by position.
        is_open: whether it takes arguments of any other name.
        takes_context: whether the worker gives it the job's context.
    """

    parameters: tuple[Parameter, ...]
    positional: tuple[str, ...]
    is_open: bool
    takes_context: bool

    @property
    def names(self) -> list[str]:
        """The names of its parameters."""
        return [parameter.name for parameter in self.parameters]


def read_signature(handler: Callable[..., Any]) -> HandlerSignature:
    """The handler's signature, with its annotations evaluated where that is possible.

    Raises:
        ConfigurationError: Python cannot tell the signature, or a parameter cannot be given by name as the worker does.
    """
    try:
        signature = _inspect(handler)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"{handler!r} has no readable signature ({error}); wrap it in a function") from error
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            raise ConfigurationError(
                f"{handler.__module__}.{getattr(handler, '__qualname__', handler)}: parameter {parameter} cannot be "
                "given by name, as the worker does; make it an ordinary or keyword-only parameter"
            )
    given = [parameter for name, parameter in signature.parameters.items() if name != CONTEXT_ARGUMENT]
    named = [parameter for parameter in given if parameter.kind is not parameter.VAR_KEYWORD]
    return HandlerSignature(
        parameters=tuple(
            Parameter(each.name, True, each.annotation)
            if each.default is each.empty
            else Parameter(each.name, False, each.annotation, each.default)
            for each in named
        ),
        positional=tuple(each.name for each in named if each.kind is not each.KEYWORD_ONLY),
        is_open=len(named) < len(given),
        takes_context=CONTEXT_ARGUMENT in signature.parameters,
    )


def bind_arguments(
    job_type: str, signature: HandlerSignature, args: Sequence[object], kwargs: Mapping[str, object]
) -> dict[str, object]:
    """The arguments by name, as they are stored. Defaults of the handler are left to the handler.

    Args:
        job_type: for the message.
        signature: of the handler, from ``read_signature``.
        args: positional arguments.
        kwargs: arguments by name.

    Raises:
        InvalidArguments: one is missing, unknown, given twice, reserved, or of another JSON kind than annotated.
    """
    positional = signature.positional
    if len(args) > len(positional):
        raise InvalidArguments(job_type, "", f"takes {len(positional)} positional arguments, {len(args)} were given")
    bound = dict(zip(positional, args, strict=False))
    missing = object()
    for name, value in kwargs.items():
        if name == CONTEXT_ARGUMENT:
            raise InvalidArguments(job_type, name, "is reserved: the worker gives the job's context under this name")
        if name in bound:
            raise InvalidArguments(job_type, name, "was given twice, by position and by name")
        bound[name] = value
    known = 0
    for parameter in signature.parameters:
        value = bound.get(parameter.name, missing)
        if value is not missing:
            known += 1
            _check_argument(job_type, parameter, value)
        elif parameter.is_required:
            _check_strangers(job_type, signature, bound)
            raise InvalidArguments(job_type, parameter.name, "is missing and has no default")
    if known < len(bound):
        _check_strangers(job_type, signature, bound)
    return bound


def _check_strangers(job_type: str, signature: HandlerSignature, bound: Mapping[str, object]) -> None:
    names = signature.names
    for name in bound:
        if name not in names and not signature.is_open:
            raise InvalidArguments(job_type, str(name), _describe_stranger(str(name), names))


def _describe_stranger(name: str, named: Sequence[str]) -> str:
    if name in OPTION_NAMES:
        return (
            "is unknown to the handler. It is an option of the job: "
            f"write .using({name}=...).enqueue(...), or enqueue(..., {name}=...) beside the dict of arguments"
        )
    return f"is unknown to the handler. {suggest(name, named)}".rstrip()


def _check_argument(job_type: str, parameter: Parameter, value: object) -> None:
    if type(value) is not parameter.annotation and not _fits(value, parameter.annotation):
        wanted = inspect.formatannotation(parameter.annotation)
        raise InvalidArguments(job_type, parameter.name, f"is declared as {wanted}, not {type(value).__name__}")


def _fits(value: object, annotation: object) -> bool:
    """Whether a value may be given for an annotation; what is no JSON kind is not judged here."""
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        return any(_fits(value, part) for part in get_args(annotation))
    if origin is Literal:
        return value in get_args(annotation)
    kind = type(None) if annotation is None else origin or annotation
    if kind not in _JSON_KINDS or type(value) not in _JSON_KINDS:
        return True
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind is int:
        return type(value) is int
    return isinstance(value, kind)


def _inspect(handler: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(handler, eval_str=True)
    except Exception:
        if sys.version_info >= (3, 14):
            return inspect.signature(handler, annotation_format=Format.FORWARDREF)
        return inspect.signature(handler)
