"""One name, one handler; a duplicate stops the start."""

import pytest

from django_pgbroker.domain.backoff import Constant, Exponential
from django_pgbroker.domain.errors import ConfigurationError, DuplicateJobType, InvalidArguments, UnknownJobType
from django_pgbroker.registry import JobType, Registry


def send(order_id: int) -> None: ...


async def fetch(url: str) -> None: ...


class AsyncCallable:
    async def __call__(self, x): ...


@pytest.fixture
def registry():
    return Registry()


def test_a_job_type_is_found_by_its_name_and_by_each_alias(registry):
    job_type = registry.register(JobType("shop.send", send, aliases=("shop.old", "shop.older")))

    assert registry.get("shop.send") is registry.get("shop.old") is registry.get("shop.older") is job_type
    assert registry.names() == ["shop.old", "shop.older", "shop.send"]
    assert registry.all() == [job_type]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (JobType("a", send), JobType("a", fetch)),
        (JobType("a", send), JobType("b", fetch, aliases=("a",))),
        (JobType("a", send, aliases=("b",)), JobType("b", fetch)),
        (JobType("a", send, aliases=("c",)), JobType("b", fetch, aliases=("c",))),
    ],
)
def test_a_second_handler_under_a_taken_name_is_an_error_that_names_both_places(registry, first, second):
    registry.register(first)

    with pytest.raises(DuplicateJobType) as raised:
        registry.register(second)

    assert "test_registry.send" in str(raised.value)
    assert "test_registry.fetch" in str(raised.value)
    assert __file__ in str(raised.value)
    assert registry.all() == [first]


def test_a_name_repeated_in_its_own_aliases_is_an_error(registry):
    with pytest.raises(DuplicateJobType, match="repeats a name"):
        registry.register(JobType("a", send, aliases=("a",)))


def test_an_unknown_name_is_an_error_with_the_closest_known_one(registry):
    registry.register(JobType("shop.send_receipt", send))

    with pytest.raises(UnknownJobType, match=r"Did you mean 'shop\.send_receipt'"):
        registry.get("shop.send_reciept")


@pytest.mark.parametrize("name", ["os.system", "builtins.eval", "subprocess.call"])
def test_a_dotted_path_that_nobody_registered_is_never_imported(registry, name):
    with pytest.raises(UnknownJobType):
        registry.get(name)


@pytest.mark.parametrize(("handler", "is_async"), [(send, False), (fetch, True), (AsyncCallable(), True)])
def test_async_handlers_are_recognised(handler, is_async):
    assert JobType("a", handler).is_async is is_async


@pytest.mark.parametrize(
    "options",
    [
        {"name": "two words"},
        {"name": ""},
        {"name": "a", "aliases": ("b c",)},
        {"name": "a", "version": 0},
        {"name": "a", "version": 40_000},
        {"name": "a", "version": True},
        {"name": "a", "retry_policy": 30},
    ],
)
def test_a_job_type_that_cannot_work_cannot_be_made(options):
    with pytest.raises(ConfigurationError):
        JobType(handler=send, **options)


def test_the_default_is_exponential_back_off():
    assert JobType("a", send).retry_policy == Exponential()
    assert JobType("a", send, retry_policy=Constant(5)).retry_policy == Constant(5)


def test_binding_names_the_job_type():
    with pytest.raises(InvalidArguments, match=r"'shop\.send', argument 'order_id'"):
        JobType("shop.send", send).bind((), {})


@pytest.mark.parametrize("handler", [dict, 5], ids=str)
def test_a_handler_without_a_readable_signature_is_refused_where_it_is_declared(handler):
    with pytest.raises(ConfigurationError, match="has no readable signature"):
        JobType(name="shop.strange", handler=handler)


def produce():
    yield 1


async def stream():
    yield 1


@pytest.mark.parametrize("handler", [produce, stream])
def test_a_generator_function_is_no_handler_for_calling_it_runs_nothing(handler):
    with pytest.raises(ConfigurationError, match="generator function"):
        JobType(name="shop.strange", handler=handler)
