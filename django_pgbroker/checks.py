"""System checks: what ``manage.py check`` says about the settings of the broker. Registered by the app."""

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, Error, register
from django.db import connections

from django_pgbroker.conf import get_settings
from django_pgbroker.domain.errors import ConfigurationError


@register()
def check_settings(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """``settings.PGBROKER`` is valid, and the database it names is PostgreSQL. Connects to nothing."""
    try:
        alias = get_settings().database
    except ConfigurationError as error:
        return [Error(str(error), hint="Correct settings.PGBROKER.", id="django_pgbroker.E001")]
    vendor = connections[alias].vendor
    if vendor == "postgresql":
        return []
    return [
        Error(
            f"PGBROKER['DATABASE'] is {alias!r}, whose backend is {vendor}; the broker runs on PostgreSQL only.",
            hint="Name an alias of DATABASES whose ENGINE is django.db.backends.postgresql, or one built on it.",
            id="django_pgbroker.E002",
        )
    ]
