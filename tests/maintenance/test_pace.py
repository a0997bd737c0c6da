"""When a duty comes next, without a database."""

from django_pgbroker.maintenance.duty import Duty, Swept
from django_pgbroker.maintenance.pace import Pace


class Hourly(Duty):
    name = "hourly"
    interval_seconds = 3600
    batch_size = 100

    def tick(self, gateway, batch):
        return Swept(0)


def test_the_first_tick_comes_soon_even_for_a_rare_duty():
    assert all(Pace(Hourly()).wait_seconds <= 2 for _ in range(50))


def test_processes_that_start_together_do_not_tick_together():
    assert len({round(Pace(Hourly()).wait_seconds, 3) for _ in range(50)}) > 10


def test_the_next_tick_is_an_interval_away_give_or_take_a_tenth():
    pace = Pace(Hourly())
    for _ in range(50):
        pace.come_again(has_more=False)
        assert 3200 < pace.wait_seconds <= 3960


def test_duties_of_many_processes_drift_apart():
    pace = Pace(Hourly())
    waits = set()
    for _ in range(50):
        pace.come_again(has_more=False)
        waits.add(round(pace.wait_seconds))
    assert len(waits) > 10


def test_a_duty_with_more_to_do_comes_again_at_once():
    pace = Pace(Hourly())
    pace.come_again(has_more=True)
    assert pace.wait_seconds <= 0.1


def test_failures_wait_longer_and_longer_but_a_minute_at_most():
    pace = Pace(Hourly())
    waits = []
    for _ in range(12):
        pace.record_failure(is_timeout=False)
        waits.append(pace.wait_seconds)
    assert waits[0] <= 1
    assert waits[3] >= 3.9
    assert 29 <= waits[-1] <= 60


def test_a_row_of_failures_is_told_once_and_so_is_its_end():
    pace = Pace(Hourly())
    assert [pace.record_failure(is_timeout=False) for _ in range(3)] == [True, False, False]
    assert [pace.record_success() for _ in range(2)] == [True, False]
    assert pace.record_failure(is_timeout=False)


def test_a_time_out_halves_the_batch_down_to_one_and_good_ticks_restore_it_slowly():
    pace = Pace(Hourly())
    sizes = []
    for _ in range(8):
        pace.record_failure(is_timeout=True)
        sizes.append(pace.batch)
    assert sizes == [50, 25, 12, 6, 3, 1, 1, 1]
    pace.record_success()
    assert pace.batch == 6
    for _ in range(30):
        pace.record_success()
    assert pace.batch == 100


def test_another_error_leaves_the_batch_as_it_is():
    pace = Pace(Hourly())
    pace.record_failure(is_timeout=False)
    assert pace.batch == 100
