"""What a worker is told at its start."""

import pytest

from django_pgbroker.domain.errors import ConfigurationError, InvalidName, InvalidOption
from django_pgbroker.worker.options import QueueShare, WorkerOptions, parse_queues


@pytest.mark.parametrize(
    ("text", "shares"),
    [
        ("default", [("default", 1)]),
        ("default,critical:5", [("default", 1), ("critical", 5)]),
        (" default , critical:5 ,", [("default", 1), ("critical", 5)]),
        ("a:1000", [("a", 1000)]),
        ("a:007", [("a", 7)]),
    ],
)
def test_names_with_optional_weights_are_read_in_their_order(text, shares):
    assert parse_queues(text) == tuple(QueueShare(name, weight) for name, weight in shares)


@pytest.mark.parametrize("text", ["", " ", ",", " , ,"])
def test_no_queue_at_all_is_refused_with_an_example(text):
    with pytest.raises(InvalidOption, match="no queue is named; write --queues default"):
        parse_queues(text)


@pytest.mark.parametrize("weight", ["0", "-1", "1001", "1.5", "many", "", "٣", "²", "1e2", "99999999999999999999"])
def test_a_weight_that_is_no_number_from_1_to_1000_is_refused(weight):
    with pytest.raises(InvalidOption, match=r"the weight after the colon must be a whole number from 1 to 1,000"):
        parse_queues(f"default:{weight}")


@pytest.mark.parametrize("text", ["a,b,a", "a:2,a:3", "a,a:1"])
def test_a_queue_that_is_named_twice_is_refused_by_name(text):
    with pytest.raises(InvalidOption, match="a queue is named twice: a$"):
        parse_queues(text)


@pytest.mark.parametrize("name", ["Größe", "with space", ":5", "a:b:5", "x" * 500, "*", "a;drop", "\x00"])
def test_a_name_that_no_queue_can_have_is_refused(name):
    with pytest.raises(InvalidName):
        parse_queues(name)


@pytest.mark.parametrize("concurrency", [0, -1, 1001])
def test_an_impossible_concurrency_is_refused(concurrency):
    with pytest.raises(InvalidOption, match=f"concurrency must be from 1 to 1,000, not {concurrency}"):
        WorkerOptions(parse_queues("default"), concurrency)


def test_a_worker_without_a_queue_is_refused():
    with pytest.raises(InvalidOption, match="at least one queue"):
        WorkerOptions(())


def test_a_queue_that_the_settings_do_not_declare_stops_the_start_with_those_that_they_do(settings, start):
    settings.PGBROKER = {"QUEUES": ["default", "mail"]}
    worker = start("default,post")
    with pytest.raises(ConfigurationError, match=r"declare no queue 'post'; .* serve one of: default, mail"):
        worker.join()
    worker.error = None
