"""Strict JSON: every line of docs/reference/payload.md, and what the encoder promises beyond it."""

import json
import uuid
from collections import OrderedDict, namedtuple
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.http import QueryDict
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy
from hypothesis import given
from hypothesis import strategies as st

from django_pgbroker.domain.errors import InvalidPayload, PayloadTooLarge
from django_pgbroker.domain.payload import encode_arguments, encode_result, sanitise_text

PAGE = Path(__file__).parents[2] / "docs/reference/payload.md"

Point = namedtuple("Point", "x y")


class Colour(Enum):
    RED = "red"


class Size(StrEnum):
    LARGE = "large"


class Level(IntEnum):
    HIGH = 3


class Metres(float):
    pass


class Thing:
    pass


def nest(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


def knot() -> list[object]:
    value: list[object] = []
    value.append({"inner": value})
    return value


KEPT: dict[str, list[object]] = {
    "`None`, `True`, `False`": [None, True, False],
    "`str`": ["", "a", 'quote " back \\ slash / \n \t \x01', "žluťoučký", "🚀", "\u2028", "%s %(x)s"],
    "`int` up to 14,000 bits (about 4,200 digits)": [0, -1, 2**63, -(2**64), 10**4200],
    "finite `float`": [0.0, 1.0, 0.1, -2.5, 1e16, 1e22, 1e23, 1.7976931348623157e308, 5e-324, 1e-7],
    "`dict` with `str` keys": [{}, {"a": {"b": 1}}, {"": 1, "a b": 2, "1": 3}],
    "`list`": [[], [1, [2, []]]],
}
REFUSED: dict[str, list[object]] = {
    "text with NUL": ["x\x00y"],
    "text with a lone surrogate": ["\ud800", "a\udcffb"],
    "larger `int`": [2**14_000],
    "`NaN`, `Infinity`, `-Infinity`": [float("nan"), float("inf"), float("-inf")],
    "`-0.0`": [-0.0],
    "`dict` with another key": [{1: "a"}, {None: 1}, {True: 1}, {1.5: 1}, {("a",): 1}, {Size.LARGE: 1}, {b"a": 1}],
    "`tuple`, named tuples too": [(1, 2), (), Point(1, 2)],
    "`set`, `frozenset`": [{1}, frozenset()],
    "`bytes`, `bytearray`, `memoryview`": [b"a", bytearray(b"a"), memoryview(b"a")],
    "`Decimal`": [Decimal("1.10")],
    "`datetime`, `date`, `time`": [datetime(2030, 1, 1), date(2030, 1, 1), time(1, 2)],
    "`timedelta`": [timedelta(seconds=1)],
    "`UUID`": [uuid.UUID(int=1)],
    "a member of an Enum, `StrEnum` and `IntEnum` too": [Colour.RED, Size.LARGE, Level.HIGH],
    "another subclass of `int`, `float`, `list` or `dict` (`OrderedDict`, `QueryDict`, `numpy.float64`)": [
        OrderedDict(a=1),
        QueryDict("a=1&a=2"),
        Metres(1.5),
    ],
    "a lazy translation": [gettext_lazy("Yes")],
    "a model instance": [User(username="ada")],
    "a generator or another iterator": [(n for n in range(3)), iter([1]), map(str, [1])],
    "a value that contains itself": [knot()],
    "more than 100 levels": [nest(100)],
    "any other object": [Thing(), Thing, object(), len, Ellipsis, 1j],
}
#: lines of the table with a test of their own below
ELSEWHERE = {
    "a subclass of `str` that is no Enum, such as `SafeString`",
    "more bytes than the limit, as JSON in UTF-8",
}


def rows_of_page() -> list[str]:
    table = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    return [line.split(" | ")[0].removeprefix("| ") for line in table[2:]]


def pairs(cases: dict[str, list[object]]) -> list[object]:
    return [
        pytest.param(value, id=f"{line}-{index}")
        for line, values in cases.items()
        for index, value in enumerate(values)
    ]


def is_same(left: object, right: object) -> bool:
    if type(left) is not type(right):
        return False
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(is_same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(is_same(left[key], right[key]) for key in left)
    return left == right


def test_every_line_of_the_page_has_a_case_here_and_no_case_is_undocumented():
    assert sorted(rows_of_page()) == sorted([*KEPT, *REFUSED, *ELSEWHERE])


@pytest.mark.parametrize("value", pairs(KEPT))
def test_what_the_page_says_is_kept_is_json_for_the_same_value(value):
    assert is_same(json.loads(encode_result(value)), value)


@pytest.mark.parametrize("value", pairs(REFUSED))
def test_what_the_page_says_is_refused_is_refused_with_its_path_and_a_hint(value):
    with pytest.raises(InvalidPayload) as raised:
        encode_arguments({"items": [0, {"price": value}]})

    assert raised.value.path.startswith("arguments.items[1].price")
    assert raised.value.hint
    assert raised.value.code == "invalid_payload"


def test_a_safe_string_arrives_as_plain_text():
    decoded = json.loads(encode_arguments({"html": SafeString("<b>")}))

    assert type(decoded["html"]) is str
    assert decoded == {"html": "<b>"}


def test_the_path_names_keys_that_are_no_identifiers_in_brackets():
    with pytest.raises(InvalidPayload, match=r"^arguments\.a\['two words'\]\[0\]: "):
        encode_arguments({"a": {"two words": [b""]}})


def test_a_key_is_checked_like_any_other_text():
    with pytest.raises(InvalidPayload, match="NUL"):
        encode_arguments({"a": {"x\x00y": 1}})


def test_the_deepest_level_that_is_allowed_is_stored():
    assert encode_result(nest(100)) == "[" * 100 + "1" + "]" * 100


def test_a_list_may_appear_twice_without_being_a_cycle():
    shared = [1]

    assert encode_result([shared, shared]) == "[[1],[1]]"


def test_a_payload_of_exactly_the_limit_is_stored_and_one_byte_more_is_not():
    fitting = {"a": "é" * 100}
    size = len(json.dumps(fitting, ensure_ascii=False, separators=(",", ":")).encode())

    assert encode_arguments(fitting, size)
    with pytest.raises(PayloadTooLarge, match=f"{size:,} bytes as JSON exceed the limit of {size - 1:,}"):
        encode_arguments(fitting, size - 1)


def test_a_result_names_its_own_root():
    with pytest.raises(InvalidPayload, match=r"^result\[0\]: "):
        encode_result([b""])


storable_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: str(number) != "-0.0")
    | storable_text,
    lambda inner: st.lists(inner) | st.dictionaries(storable_text, inner),
)


@given(json_values)
def test_any_json_value_comes_back_the_same(value):
    assert is_same(json.loads(encode_result(value, 10**9)), value)


@given(st.text(st.characters(categories=["Cs", "L", "Cc", "Zs"], include_characters="\x00")), st.integers(60, 200))
def test_sanitised_text_can_be_stored_and_keeps_its_limit(text, limit):
    clean = sanitise_text(text, limit)

    assert "\x00" not in clean
    assert clean.encode("utf-8").decode("utf-8") == clean
    assert len(clean) <= limit


def test_sanitising_shows_what_was_there():
    assert sanitise_text("a\x00b\udc80c", 100) == r"a\x00b\udc80c"


def test_a_long_text_is_cut_with_a_mark_that_says_its_length():
    clean = sanitise_text("x" * 1000, 100)

    assert clean.startswith("xxx")
    assert clean.endswith(" … [truncated, 1000 characters in all]")
    assert len(clean) == 100
