"""The settings: every key bounded, unknown and contradictory ones refused, the reference page true."""

import re
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest
from django.test import override_settings

from django_pgbroker.conf import Settings, describe_settings, get_settings, read_settings
from django_pgbroker.domain.errors import ConfigurationError

PAGE = Path(__file__).parents[1] / "docs/reference/settings.md"
DATABASES = ("default", "jobs")


def read(**given):
    return read_settings(given, DATABASES)


def test_without_settings_the_documented_defaults_hold():
    defaults = read()

    assert defaults == Settings()
    assert (defaults.default_queue, defaults.default_max_attempts, defaults.default_priority) == ("default", 3, 0)
    assert (defaults.default_timeout_seconds, defaults.drain_seconds) == (300, 30)
    assert (defaults.poll_min_seconds, defaults.poll_max_seconds) == (0.01, 5)
    assert (defaults.lease_seconds, defaults.heartbeat_seconds) == (60, 12)


def test_the_reference_page_is_the_table_of_the_code():
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]

    assert rows == [
        f"| `{key}` | `{default}` | {bounds} | {purpose} |" for key, default, bounds, purpose in describe_settings()
    ]


BOUNDED = [row for row in describe_settings() if row[2]]


@pytest.mark.parametrize(("key", "bounds"), [(row[0], row[2]) for row in BOUNDED])
def test_a_number_beyond_its_documented_bounds_is_refused(key, bounds):
    span, _, none = bounds.partition(", or ")
    low, high = (float(bound.replace(",", "")) for bound in span.split(" to "))

    for value in (low - 1, high + 1, float("nan"), float("inf"), 10**5000, "5", True, [1], *([] if none else [None])):
        with pytest.raises(ConfigurationError, match=key):
            read(**{key: int(value) if value in (low - 1, high + 1) else value})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"DEFAULT_QEUE": "a"}, "no key 'DEFAULT_QEUE'. Did you mean 'DEFAULT_QUEUE'"),
        ({"lease_seconds": 60}, "no key 'lease_seconds'. Did you mean 'LEASE_SECONDS'"),
        ({"DATABASE": "job"}, "no alias in DATABASES. Did you mean 'jobs'"),
        ({"DATABASE": ""}, "DATABASE"),
        ({"LISTEN": 1}, "must be True or False"),
        ({"TRANSACTION_POOLER": "yes"}, "must be True or False"),
        (
            {"LISTEN_DATABASE": "job"},
            "'LISTEN_DATABASE'] is 'job', which is no alias in DATABASES. Did you",
        ),
        ({"LISTEN_DATABASE": ["jobs"]}, "'LISTEN_DATABASE'] must be a text"),
        ({"LISTEN_DATABASE": "default", "TRANSACTION_POOLER": True}, "where nobody can LISTEN"),
        ({"DEFAULT_MAX_ATTEMPTS": 2.5}, "whole number"),
        ({"DEFAULT_QUEUE": "two words"}, "DEFAULT_QUEUE"),
        ({"PARTITION_PERIOD": "year"}, "day, week, month"),
        ({"PARTITION_PERIOD": "day", "RETENTION_DAYS": 365}, "365 partitions of a day, more than 200"),
        ({"RETENTION_DAYS": 3650}, "521 partitions of a week"),
        ({"LEASE_SECONDS": 20, "HEARTBEAT_SECONDS": 11}, "more than half of 'LEASE_SECONDS'"),
        ({"POLL_MIN_SECONDS": 2, "POLL_MAX_SECONDS": 1}, "more than 'POLL_MAX_SECONDS'"),
        ({"QUEUES": ["critical"]}, "'DEFAULT_QUEUE'] names the queue 'default'"),
        ({"QUEUES": ["default"], "ROUTES": {"shop.*": "shop"}}, "'ROUTES'] names the queue 'shop'"),
        ({"QUEUES": []}, "QUEUES"),
        ({"QUEUES": "default"}, "QUEUES"),
        ({"QUEUES": ["a b"]}, "cannot be the name of a queue"),
        ({"QUEUES": {"default": {"aging": 1}}}, "no option 'aging'"),
        ({"QUEUES": {"default": {"ageing_seconds": -1}}}, "ageing_seconds"),
        ({"QUEUES": {"default": {"ageing_seconds": 10**7}}}, "ageing_seconds"),
        ({"QUEUES": {"default": 5}}, "dict of options"),
        ({"ROUTES": ["a"]}, "ROUTES"),
        ({"ROUTES": {"a": "b c"}}, "cannot be the name of a queue"),
        ({"PRIORITY_LEVELS": {"user": 101}}, "PRIORITY_LEVELS"),
        ({"PRIORITY_LEVELS": {"user": "high"}}, "PRIORITY_LEVELS"),
        ({"PRIORITY_LEVELS": {1: 1}}, "PRIORITY_LEVELS"),
    ],
)
def test_a_wrong_setting_is_refused_with_the_way_out(given, message):
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        read(**given)


def test_none_keeps_the_history_for_ever_and_a_fraction_of_a_day_is_refused():
    assert read().retention_days == 90
    assert read(RETENTION_DAYS=None).retention_days is None
    with pytest.raises(ConfigurationError, match="whole number from 1 to 3,650, or None"):
        read(RETENTION_DAYS=1.5)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {"default": "default", "jobs": "jobs"}),
        ({"TRANSACTION_POOLER": True}, {"default": None, "jobs": "jobs"}),
        ({"TRANSACTION_POOLER": True, "LISTEN_DATABASE": "jobs"}, {"default": "jobs", "jobs": "jobs"}),
        ({"LISTEN_DATABASE": "jobs"}, {"default": "jobs", "jobs": "jobs"}),
        ({"DATABASE": "jobs", "TRANSACTION_POOLER": True}, {"default": "default", "jobs": None}),
    ],
)
def test_workers_listen_where_a_connection_is_direct(given, expected):
    settings = read(**given)
    assert {alias: settings.listening_alias(alias) for alias in expected} == expected


def test_settings_that_are_no_dict_are_refused():
    with pytest.raises(ConfigurationError, match="PGBROKER must be a dict"):
        read_settings([], DATABASES)


def test_queues_may_be_a_list_or_say_their_own_ageing():
    assert read(QUEUES=["default"], AGEING_SECONDS=5).queues["default"].ageing_seconds == 5
    queues = read(QUEUES={"default": {}, "slow": {"ageing_seconds": 7}}).queues
    assert [queues["default"].ageing_seconds, queues["slow"].ageing_seconds] == [60, 7]


def test_settings_cannot_be_changed_behind_anybodys_back():
    settings = read(ROUTES={"a": "b"})

    with pytest.raises(FrozenInstanceError):
        settings.lease_seconds = 1
    with pytest.raises(TypeError):
        settings.routes["c"] = "d"


def test_settings_are_read_once_and_again_when_a_test_overrides_them():
    assert get_settings() is get_settings()

    with override_settings(PGBROKER={"DEFAULT_MAX_ATTEMPTS": 9}):
        assert get_settings().default_max_attempts == 9
    assert get_settings().default_max_attempts == 3
