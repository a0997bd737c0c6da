"""What ends the demo."""

import signal

import pytest

from example_project.documents.stopping import StopAsked, stop_on_signals

NUMBERS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.mark.parametrize("number", NUMBERS)
def test_the_first_signal_stops_and_a_second_one_does_not_disturb_the_end(number: signal.Signals) -> None:
    # whatever started these tests may have had them ignore it
    before = signal.signal(number, signal.default_int_handler)
    try:
        with stop_on_signals():
            with pytest.raises(StopAsked):
                signal.raise_signal(number)
            signal.raise_signal(number)
    finally:
        signal.signal(number, before)


def test_a_failure_is_no_excuse_for_swallowing_a_stop() -> None:
    assert not issubclass(StopAsked, Exception)


def test_afterwards_signals_mean_what_they_meant_before() -> None:
    before = [signal.getsignal(number) for number in NUMBERS]

    with stop_on_signals():
        assert signal.getsignal(signal.SIGTERM) not in before

    assert [signal.getsignal(number) for number in NUMBERS] == before


def test_a_hang_up_is_ignored_under_nohup() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stop_on_signals():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
