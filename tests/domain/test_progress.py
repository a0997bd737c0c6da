"""How far a job is: what may be told, and the percentage that comes of it."""

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_pgbroker.domain.errors import InvalidOption
from django_pgbroker.domain.progress import STAGE_LIMIT, Progress, make_progress

AMOUNTS = st.integers(0, 10**300) | st.floats(0, allow_nan=False, allow_infinity=False)


@given(done=AMOUNTS, total=st.none() | AMOUNTS.filter(bool))
def test_a_percentage_is_never_below_0_nor_above_100(done, total):
    percent = make_progress(done, total).percent
    assert (percent is None) == (total is None)
    assert percent is None or 0 <= percent <= 100


@pytest.mark.parametrize(
    ("done", "total", "percent"),
    [(0, 7, 0), (1, 4, 25), (7, 7, 100), (9, 7, 100), (5e-324, 1e308, 0), (Decimal("2.5"), 10, 25), (3, None, None)],
)
def test_the_percentage_is_what_one_expects(done, total, percent):
    assert make_progress(done, total).percent == percent


@pytest.mark.parametrize("value", [-1, math.nan, math.inf, 10**400, "7", b"7", True, None, [1], object(), 1j])
@pytest.mark.parametrize("argument", ["done", "total"])
def test_what_is_no_amount_is_refused_by_its_name(argument, value):
    if argument == "total" and value is None:
        pytest.skip("the total may be unknown")
    with pytest.raises(InvalidOption, match=rf"progress\({argument}=") as caught:
        make_progress(**{"done": 1, argument: value})
    assert len(str(caught.value)) < 200


def test_a_total_of_nothing_is_refused_and_a_stage_that_is_no_text():
    with pytest.raises(InvalidOption, match="total=0"):
        make_progress(0, 0)
    with pytest.raises(InvalidOption, match="stage=7"):
        make_progress(0, stage=7)


@given(st.text(st.characters(), max_size=500))
def test_every_stage_can_be_stored_and_none_is_long(text):
    stage = make_progress(1, stage=text).stage
    assert len(stage) <= STAGE_LIMIT
    assert "\x00" not in stage
    stage.encode("utf-8")


def test_what_is_told_is_kept():
    assert make_progress(2, 5, "load") == Progress(2.0, 5.0, "load")
