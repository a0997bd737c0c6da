"""``@job``: the function stays a function, and can be enqueued; options and arguments never collide."""

import asyncio
import inspect
from datetime import timedelta

import pytest

from django_pgbroker import ConfigurationError, Constant, DuplicateJobType, InvalidOption, enqueue, job
from django_pgbroker.models import JobPayload
from django_pgbroker.registry import registry
from operations.jobs import add, note


def test_a_decorated_function_is_still_the_function():
    """Documented."""
    assert add(2, right=3) == 5
    assert add.__name__ == "add"
    assert add.__module__.endswith("jobs")
    assert list(inspect.signature(add).parameters) == ["left", "right"]


def test_it_is_registered_under_its_name_with_its_defaults():
    assert registry.get("tests.note") is registry.get("tests.old_note") is note
    assert (note.queue, note.priority, note.max_attempts, note.timeout_seconds, note.version) == (
        "notes", "backfill", 7, 60, 3,
    )  # fmt: skip


def test_an_async_function_is_awaited_as_before():
    @job("tests.job_types.wait", retry=Constant(5))
    async def wait(seconds: int) -> int:
        return seconds

    assert wait.is_async
    assert asyncio.run(wait(3)) == 3
    assert wait.retry_policy == Constant(5)


@pytest.mark.django_db
def test_an_argument_may_have_the_name_of_an_option():
    handle = note.using(queue="elsewhere").enqueue("a", queue="an argument")

    assert JobPayload.objects.get(job_id=handle.id).arguments == {"text": "a", "queue": "an argument"}


@pytest.mark.django_db
def test_a_bound_producer_may_be_used_again_and_leaves_the_type_alone():
    later = add.using(delay=timedelta(hours=1))

    assert [later.enqueue(1).status().label, later.enqueue(2).status().label] == ["scheduled", "scheduled"]
    assert add.enqueue(3).status().label == "pending"


def test_options_that_contradict_each_other_are_refused_where_they_are_written():
    with pytest.raises(InvalidOption):
        add.using(delay=10, expires=5)


@pytest.mark.parametrize(
    "options",
    [
        {"queue": "two words"},
        {"priority": 101},
        {"max_attempts": 0},
        {"timeout": 0},
        {"timeout": 0.5},
        {"retry": 30},
        {"version": 0},
        {"aliases": ["a b"]},
    ],
)
def test_defaults_that_cannot_work_stop_the_start(options):
    with pytest.raises(ConfigurationError, match=r"tests\.job_types\.wrong|'a b'"):
        job("tests.job_types.wrong", **options)(lambda: None)
    assert "tests.job_types.wrong" not in registry.names()


def test_an_option_that_does_not_exist_is_told_with_the_one_that_was_meant():
    with pytest.raises(ConfigurationError, match=r"tests\.job_types\.wrong.*Did you mean 'timeout'"):
        job("tests.job_types.wrong", timeout_seconds=5)
    with pytest.raises(InvalidOption, match="Did you mean 'using'"):
        add.using(database="default")
    with pytest.raises(InvalidOption, match=r"'left' is no option.*enqueue\(\.\.\.\) behind it"):
        add.using(left=1)


def test_the_alias_of_the_database_is_called_using_everywhere(second_alias):
    bound = add.using(using=second_alias).enqueue(1)
    assert (bound.using, enqueue("tests.add", {"left": 1}, using=second_alias).using) == (second_alias, second_alias)


def test_a_name_that_is_taken_stops_the_start_and_keeps_the_first():
    with pytest.raises(DuplicateJobType, match=r"jobs\.add"):
        job("tests.add")(lambda: None)
    assert registry.get("tests.add") is add


def test_a_forgotten_name_is_an_error_that_shows_the_form():
    with pytest.raises(ConfigurationError, match=r'@job\("shop\.send_receipt"\)'):
        job(lambda: None)
