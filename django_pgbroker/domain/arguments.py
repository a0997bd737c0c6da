"""Fit the arguments of a job to its handler's signature, so that a wrong call fails where it is made."""

import inspect
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Union, get_args, get_origin

from django_pgbroker.domain.errors import ConfigurationError, InvalidArguments
from django_pgbroker.domain.names import suggest
from django_pgbroker.domain.options import OPTION_NAMES

if sys.version_info >= (3, 14):
    from annotationlib import Format

CONTEXT_ARGUMENT = "ctx"

_JSON_KINDS = (str, int, float, bool, list, dict, type(None))


def read_signature(handler: Callable[..., Any]) -> inspect.Signature:
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
    return signature


def takes_context(signature: inspect.Signature) -> bool:
    """Whether the handler has a ``ctx`` parameter, which the worker fills and a producer may not."""
    return CONTEXT_ARGUMENT in signature.parameters


def bind_arguments(
    job_type: str, signature: inspect.Signature, args: Sequence[object], kwargs: Mapping[str, object]
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
    parameters = {name: p for name, p in signature.parameters.items() if name != CONTEXT_ARGUMENT}
    named = [name for name, p in parameters.items() if p.kind is not p.VAR_KEYWORD]
    positional = [name for name in named if parameters[name].kind is not inspect.Parameter.KEYWORD_ONLY]
    if len(args) > len(positional):
        raise InvalidArguments(job_type, "", f"takes {len(positional)} positional arguments, {len(args)} were given")
    bound = dict(zip(positional, args, strict=False))
    is_open = len(named) < len(parameters)
    for name, value in kwargs.items():
        if name == CONTEXT_ARGUMENT:
            raise InvalidArguments(job_type, name, "is reserved: the worker gives the job's context under this name")
        if name in bound:
            raise InvalidArguments(job_type, name, "was given twice, by position and by name")
        if name not in named and not is_open:
            raise InvalidArguments(job_type, str(name), _describe_stranger(str(name), named))
        bound[name] = value
    for name in named:
        _check_argument(job_type, parameters[name], bound)
    return bound


def _describe_stranger(name: str, named: Sequence[str]) -> str:
    if name in OPTION_NAMES:
        return (
            "is unknown to the handler. It is an option of the job: "
            f"write .using({name}=...).enqueue(...), or enqueue(..., {name}=...) beside the dict of arguments"
        )
    return f"is unknown to the handler. {suggest(name, named)}".rstrip()


def _check_argument(job_type: str, parameter: inspect.Parameter, bound: Mapping[str, object]) -> None:
    if parameter.name not in bound:
        if parameter.default is parameter.empty:
            raise InvalidArguments(job_type, parameter.name, "is missing and has no default")
        return
    value = bound[parameter.name]
    if not _fits(value, parameter.annotation):
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
