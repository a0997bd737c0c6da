"""What ``manage.py check`` says about the broker's settings, without connecting to anything."""

import pytest
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from pytest_django.fixtures import Settings

from django_pgbroker.checks import check_settings
from tests.migrations.conftest import SQLITE, as_alias


def test_the_settings_of_the_example_project_pass() -> None:
    assert check_settings(None) == []


def test_a_wrong_setting_is_an_error_that_names_it(settings: Settings) -> None:
    settings.PGBROKER = {"LEASE_SECOND": 60}

    with pytest.raises(SystemCheckError, match=r"E001.*LEASE_SECOND"):
        call_command("check")


def test_a_database_that_is_not_postgresql_is_an_error_that_names_it(settings: Settings) -> None:
    with as_alias(SQLITE) as alias:
        settings.PGBROKER = {"DATABASE": alias}

        [error] = check_settings(None)

    assert error.id == "django_pgbroker.E002"
    assert alias in error.msg
    assert "sqlite" in error.msg


def test_the_check_connects_to_nothing(settings: Settings) -> None:
    unreachable = {"ENGINE": "django.db.backends.postgresql", "NAME": "x", "HOST": "192.0.2.1"}
    with as_alias(unreachable) as alias:
        settings.PGBROKER = {"DATABASE": alias}

        assert check_settings(None) == []
