"""What a worker is told at its start."""

import pytest

from django_pgbroker.domain.errors import ConfigurationError, InvalidName, InvalidOption
from django_pgbroker.registry import registry
from django_pgbroker.worker.options import QueueShare, WorkerOptions, parse_queues
from django_pgbroker.worker.type_choice import parse_patterns


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


def test_weights_and_strict_order_are_refused_together():
    with pytest.raises(InvalidOption, match="write critical without :5, or leave out --strict"):
        WorkerOptions(parse_queues("default,critical:5"), is_strict=True)


@pytest.mark.parametrize("text", ["", " , "])
def test_no_pattern_at_all_is_refused_with_an_example(text):
    with pytest.raises(InvalidOption, match="no job type is named; write names or patterns"):
        parse_patterns(text)


@pytest.fixture
def shop(declare):
    """Job types to choose from; the last one has a former name."""
    for name, aliases in [("mail.send", ()), ("mail.bulk", ()), ("shop.charge", ()), ("shop.refund", ("old.refund",))]:
        declare(name, aliases=aliases)(lambda: 1)
    yield
    registry.forget("old.refund")


def chosen(*types, exclude=()):
    options = WorkerOptions(parse_queues("default"), types=types, exclude_types=exclude)
    return [name for name in options.job_type_names() if name.startswith(("mail.", "shop.", "old."))]


@pytest.mark.parametrize(
    ("types", "exclude", "names"),
    [
        ((), (), ["mail.bulk", "mail.send", "old.refund", "shop.charge", "shop.refund"]),
        (("mail.*",), (), ["mail.bulk", "mail.send"]),
        (("mail.*", "shop.charge"), (), ["mail.bulk", "mail.send", "shop.charge"]),
        (("mail.*",), ("*.bulk",), ["mail.send"]),
        ((), ("shop.*",), ["mail.bulk", "mail.send"]),
        (("old.refund",), (), ["old.refund", "shop.refund"]),
        ((), ("mail.*", "old.*"), ["shop.charge"]),
    ],
)
def test_patterns_choose_job_types_with_all_their_names(shop, types, exclude, names):
    assert chosen(*types, exclude=exclude) == names


@pytest.mark.parametrize("options", [{"types": ("mail.sent",)}, {"exclude_types": ("mail.sent",)}])
def test_a_pattern_that_fits_nothing_is_refused_with_names_that_resemble_it(shop, options):
    with pytest.raises(InvalidOption, match="no job type fits 'mail.sent'. Did you mean 'mail.send'"):
        WorkerOptions(parse_queues("default"), **options)


def test_a_choice_that_leaves_nothing_is_refused(shop):
    with pytest.raises(InvalidOption, match="no job type is left: mail.* exclude all"):
        WorkerOptions(parse_queues("default"), types=("mail.send",), exclude_types=("mail.*",))
