"""Errors: each has a code of its own that stays, and survives the way to another process."""

import pickle

import pytest

from django_pgbroker.domain import errors
from django_pgbroker.domain.errors import PgbrokerError, show_value

CLASSES = sorted(
    (each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, PgbrokerError)),
    key=lambda each: each.__name__,
)


def test_every_class_has_a_code_of_its_own():
    codes = [each.code for each in CLASSES]

    assert len(set(codes)) == len(codes) >= 14
    assert all("code" in vars(each) for each in CLASSES)


@pytest.mark.parametrize(
    "error",
    [
        errors.InvalidArguments("shop.send", "order_id", "is missing"),
        errors.InvalidPayload("arguments.a", "no"),
        errors.PayloadTooLarge("arguments", "too large"),
        errors.JobFailed(7, "dead", "ValueError", "no such order"),
        errors.UnknownQueue("no such queue"),
    ],
)
def test_an_error_is_the_same_in_another_process(error):
    copy = pickle.loads(pickle.dumps(error))

    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


def test_a_failed_job_tells_as_much_as_is_known():
    assert (
        str(errors.JobFailed(7, "dead", "ValueError", "no such order")) == "job 7 is dead (ValueError: no such order)"
    )
    assert str(errors.JobFailed(7, "expired")) == "job 7 is expired"


def test_a_value_is_shown_whatever_its_repr_does():
    class Rude:
        def __repr__(self):
            raise RuntimeError

    assert show_value(Rude()) == "a Rude"
    assert show_value(10**5000) == "a int"
    assert len(show_value("x" * 1000)) == 100
