"""What ``manage.py check`` says about the broker's settings, without connecting to anything."""

from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from pytest_django.fixtures import Settings

from django_pgbroker.checks import check_admin, check_settings
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


def test_a_database_to_listen_on_that_is_not_postgresql_is_an_error_that_names_it(settings: Settings) -> None:
    with as_alias(SQLITE) as alias:
        settings.PGBROKER = {"LISTEN_DATABASE": alias}

        [error] = check_settings(None)

    assert error.id == "django_pgbroker.E002"
    assert "LISTEN_DATABASE" in error.msg


POOLED = {"ENGINE": "django.db.backends.postgresql", "NAME": "x", "DISABLE_SERVER_SIDE_CURSORS": True}


@pytest.mark.parametrize(
    ("changes", "ids"),
    [
        ({}, []),
        ({"OPTIONS": {"server_side_binding": True, "prepare_threshold": None}}, []),
        ({"OPTIONS": {"options": "-c work_mem=5MB"}}, ["W001"]),
        ({"OPTIONS": {"assume_role": "shop", "prepare_threshold": 0}}, ["W001", "W001"]),
        ({"DISABLE_SERVER_SIDE_CURSORS": False}, ["W002"]),
    ],
)
def test_what_django_must_not_do_behind_a_pooler_is_a_warning(
    changes: dict[str, Any], ids: list[str], settings: Settings
) -> None:
    with as_alias({**POOLED, **changes}) as alias:
        settings.PGBROKER = {"DATABASE": alias}
        assert check_settings(None) == []
        settings.PGBROKER = {"DATABASE": alias, "TRANSACTION_POOLER": True}

        assert [message.id for message in check_settings(None)] == [f"django_pgbroker.{each}" for each in ids]


def test_the_check_connects_to_nothing(settings: Settings) -> None:
    unreachable = {"ENGINE": "django.db.backends.postgresql", "NAME": "x", "HOST": "192.0.2.1"}
    with as_alias(unreachable) as alias:
        settings.PGBROKER = {"DATABASE": alias}

        assert check_settings(None) == []


def test_screens_without_the_app_of_their_buttons_are_an_error(settings: Settings) -> None:
    settings.INSTALLED_APPS = [app for app in settings.INSTALLED_APPS if app != "admin_extra_buttons"]

    [error] = check_admin(None)
    settings.INSTALLED_APPS = [app for app in settings.INSTALLED_APPS if app != "django.contrib.admin"]

    assert error.id == "django_pgbroker.E004"
    assert "INSTALLED_APPS" in str(error.hint)
    assert check_admin(None) == []
