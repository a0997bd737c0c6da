"""How figures are made, and that the handlers add nothing to the project's models."""

import os

import pytest
from django.apps import apps

from django_pgbroker.bench.errors import BenchError
from django_pgbroker.bench.handlers import make_orm_handler
from django_pgbroker.bench.process_figures import processor_seconds, resident_mb
from django_pgbroker.bench.report import milliseconds, percentile


def test_a_percentile_is_a_sample():
    samples = [float(number) for number in range(100, 0, -1)]
    assert [percentile(samples, percent) for percent in (50, 99, 100)] == [50, 99, 100]
    assert percentile([7.0], 50) == percentile([7.0], 99) == 7
    assert milliseconds([0.0012345], 50) == pytest.approx(1.234, abs=0.001)


def test_no_samples_are_told_and_not_taken_for_zero():
    with pytest.raises(BenchError, match="make it longer"):
        percentile([], 99)


def test_memory_and_processor_time_of_a_process():
    ours = resident_mb(os.getpid())
    before = processor_seconds(os.getpid())
    assert ours is not None
    assert ours > 10
    assert before is not None
    ballast = bytearray(200_000_000)
    ballast[::4096] = b"x" * len(ballast[::4096])
    grown = resident_mb(os.getpid())
    assert grown is not None
    assert grown > ours + 150
    assert sum(range(20_000_000)) > 0
    after = processor_seconds(os.getpid())
    assert after is not None
    assert after > before


def test_a_process_that_is_not_there_has_no_figures():
    assert resident_mb(2**30) is None
    assert processor_seconds(2**30) is None


def test_the_model_of_the_orm_handler_belongs_to_no_app():
    make_orm_handler("default")
    assert "pgbroker_bench" not in apps.all_models
