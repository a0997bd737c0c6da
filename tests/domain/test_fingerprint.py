"""Errors of one fault have one fingerprint, whatever changes between two calls of it."""

import subprocess
import sys

from django_pgbroker.domain.fingerprint import fingerprint_error


def caught(call, *args):
    try:
        call(*args)
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def divide(number):
    return number / 0


def convert(text):
    return int(text)


def through_another_function(text):
    return convert(text)


def recurse(depth):
    return recurse(depth - 1) if depth else divide(1)


def test_the_message_does_not_count():
    assert fingerprint_error(caught(convert, "a")) == fingerprint_error(caught(convert, "b"))


def test_the_line_does_not_count():
    def raise_here_or_there(where):
        if where:
            raise ValueError("here")
        raise ValueError("there")

    assert fingerprint_error(caught(raise_here_or_there, 0)) == fingerprint_error(caught(raise_here_or_there, 1))


def test_the_class_and_the_functions_count():
    prints = {
        fingerprint_error(caught(convert, "a")),
        fingerprint_error(caught(convert, None)),
        fingerprint_error(caught(divide, 1)),
        fingerprint_error(caught(through_another_function, "a")),
    }
    assert len(prints) == 4


def test_who_called_the_handler_from_far_away_does_not_count():
    assert fingerprint_error(caught(recurse, 10)) == fingerprint_error(caught(recurse, 50))


def test_an_error_that_was_never_raised_has_one_too():
    assert fingerprint_error(ValueError()) != fingerprint_error(TypeError())


def test_it_fits_a_signed_64_bit_column():
    errors = [caught(convert, "a"), caught(divide, 1), *(type(f"E{n}", (Exception,), {})() for n in range(200))]
    prints = [fingerprint_error(error) for error in errors]
    assert all(-(2**63) <= each < 2**63 for each in prints)
    assert min(prints) < 0 < max(prints)


def test_names_that_are_no_utf_8_are_no_obstacle():
    error = type("Broken", (Exception,), {"__module__": "\ud800"})()
    assert isinstance(fingerprint_error(error), int)


def test_it_is_the_same_in_another_process():
    code = (
        "from django_pgbroker.domain.fingerprint import fingerprint_error\n"
        "try: int('x')\n"
        "except ValueError as error: print(fingerprint_error(error))\n"
    )
    prints = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, check=True, timeout=60, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    }
    assert len(prints) == 1
