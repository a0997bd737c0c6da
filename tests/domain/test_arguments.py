"""A wrong call fails where it is made, with the name of the job type and of the argument."""

from typing import TYPE_CHECKING, Any, Literal

import pytest

from django_pgbroker.domain.arguments import bind_arguments, read_signature
from django_pgbroker.domain.errors import ConfigurationError, InvalidArguments

if TYPE_CHECKING:
    from decimal import Decimal


def send(order_id: int, note: str | None = None, *, copies: int = 1, tags: list[str] | None = None) -> None: ...


def bind(handler, *args, **kwargs):
    return bind_arguments("shop.send", read_signature(handler), args, kwargs)


def test_positional_and_named_arguments_become_names_and_defaults_stay_with_the_handler():
    assert bind(send, 7, copies=2) == {"order_id": 7, "copies": 2}


@pytest.mark.parametrize(
    ("args", "kwargs", "argument", "reason"),
    [
        ((), {}, "order_id", "missing"),
        ((1,), {"colour": "red"}, "colour", "unknown"),
        ((1,), {"copys": 2}, "copys", "Did you mean 'copies'"),
        ((1,), {"queue": "mail"}, "queue", "write .using(queue=...).enqueue(...)"),
        ((1,), {"order_id": 2}, "order_id", "given twice"),
        ((1, "a", 3), {}, "", "takes 2 positional arguments, 3 were given"),
        ((1,), {"ctx": None}, "ctx", "reserved"),
        (("7",), {}, "order_id", "declared as int, not str"),
        ((True,), {}, "order_id", "declared as int, not bool"),
        ((None,), {}, "order_id", "declared as int, not NoneType"),
        ((1,), {"note": 5}, "note", "not int"),
        ((1,), {"tags": "a"}, "tags", "not str"),
    ],
)
def test_a_wrong_call_names_the_job_type_and_the_argument(args, kwargs, argument, reason):
    with pytest.raises(InvalidArguments) as raised:
        bind(send, *args, **kwargs)

    assert (raised.value.job_type, raised.value.argument) == ("shop.send", argument)
    assert reason in str(raised.value)
    assert "'shop.send'" in str(raised.value)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [(float, 1), (float, 1.5), (int | None, None), (Any, object()), (dict[str, int], {}), (Literal["a", "b"], "b")],
)
def test_a_value_that_fits_its_annotation_is_taken(annotation, value):
    def handler(x): ...

    handler.__annotations__["x"] = annotation

    assert bind(handler, value) == {"x": value}


@pytest.mark.parametrize(
    ("annotation", "value"), [(float, True), (float, "1"), (dict, []), (None, 1), (Literal["a"], "b"), (str | int, [])]
)
def test_a_value_of_another_kind_is_refused(annotation, value):
    def handler(x): ...

    handler.__annotations__["x"] = annotation

    with pytest.raises(InvalidArguments, match="argument 'x'"):
        bind(handler, value)


def test_annotations_that_only_a_type_checker_knows_are_not_judged():
    def handler(price: "Decimal", count: "int"): ...

    assert bind(handler, "1.10", 2) == {"price": "1.10", "count": 2}


def test_the_context_is_no_argument_of_the_job():
    def handler(ctx, order_id): ...

    assert read_signature(handler).takes_context
    assert bind(handler, 7) == {"order_id": 7}


def test_a_handler_with_open_keywords_takes_any_name():
    def handler(a, **rest): ...

    assert bind(handler, 1, b=2) == {"a": 1, "b": 2}


def test_a_handler_whose_arguments_cannot_be_given_by_name_is_refused():
    def positional(a, /): ...

    def variable(*numbers): ...

    for handler in (positional, variable):
        with pytest.raises(ConfigurationError, match="cannot be given by name"):
            read_signature(handler)
