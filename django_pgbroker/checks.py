"""System checks: what ``manage.py check`` says about the settings of the broker. Registered by the app."""

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig, apps
from django.core.checks import CheckMessage, Error, register
from django.core.checks import Warning as Concern
from django.db import connections

from django_pgbroker.conf import get_settings
from django_pgbroker.domain.errors import ConfigurationError
from django_pgbroker.plugins import import_middleware
from django_pgbroker.registry import registry
from django_pgbroker.worker.middleware import is_able, load_chain

#: Options of an alias that keep something on a server connection, which a pooler then hands to others.
_KEPT = {
    "options": "The pooler refuses startup options, or drops them. Set them for the role: ALTER ROLE … SET ….",
    "assume_role": "Django sets the role once a session, so that other clients of the pool get it. Have the pooler "
    "log in as a user for whom ALTER ROLE … SET role has been said.",
    "prepare_threshold": "Prepared statements need PgBouncer 1.21 or newer with max_prepared_statements. Leave it out.",
}


@register()
def check_settings(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """``settings.PGBROKER`` is valid, and the databases it names are PostgreSQL. Connects to nothing."""
    try:
        settings = get_settings()
    except ConfigurationError as error:
        return [Error(str(error), hint="Correct settings.PGBROKER.", id="django_pgbroker.E001")]
    messages: list[CheckMessage] = _check_vendor("DATABASE", settings.database)
    if settings.listen_database is not None:
        messages += _check_vendor("LISTEN_DATABASE", settings.listen_database)
    if settings.transaction_pooler and not messages:
        messages += _check_pooled(settings.database)
    return messages + _check_middleware(settings.middleware)


@register()
def check_admin(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """The screens find the templates of their buttons."""
    if not apps.is_installed("django.contrib.admin") or apps.is_installed("admin_extra_buttons"):
        return []
    return [
        Error(
            "The screens of the broker in Django's admin need the app 'admin_extra_buttons', which is not installed.",
            hint="Add 'admin_extra_buttons' to INSTALLED_APPS; the package came along with django_pgbroker.",
            id="django_pgbroker.E004",
        )
    ]


def _check_middleware(paths: Sequence[str]) -> list[CheckMessage]:
    """Each can be imported, serves the handlers that there are, and can be built around them."""
    chain = load_chain()
    for is_async in (False, True):
        needing = [job_type for job_type in registry.all() if job_type.is_async == is_async]
        if chain is None or not needing:
            continue
        try:
            unable = [path for path in paths if not is_able(import_middleware(path), is_async=is_async)]
            if not unable:
                chain.require(needing)
        except ConfigurationError as error:
            return [Error(str(error), hint="Correct PGBROKER['MIDDLEWARE'].", id="django_pgbroker.E003")]
        if unable:
            kind = "async" if is_async else "sync"
            return [
                Concern(
                    f"PGBROKER['MIDDLEWARE'] has {unable[0]!r}, which is not made for {kind} handlers; no worker that "
                    f"takes the job type {needing[0].name!r} will start.",
                    hint=f"Set its {kind}_capable, or start workers with --exclude-types.",
                    id="django_pgbroker.W003",
                )
            ]
    return []


def _check_vendor(key: str, alias: str) -> list[CheckMessage]:
    vendor = connections[alias].vendor
    if vendor == "postgresql":
        return []
    return [
        Error(
            f"PGBROKER[{key!r}] is {alias!r}, whose backend is {vendor}; the broker runs on PostgreSQL only.",
            hint="Name an alias of DATABASES whose ENGINE is django.db.backends.postgresql, or one built on it.",
            id="django_pgbroker.E002",
        )
    ]


def _check_pooled(alias: str) -> list[CheckMessage]:
    """What Django's own connections must not do behind a pooler in transaction mode."""
    given = connections[alias].settings_dict
    messages: list[CheckMessage] = [
        Concern(
            f"DATABASES[{alias!r}]['OPTIONS'] has {option!r}, and PGBROKER['TRANSACTION_POOLER'] says that the alias "
            "is behind a pooler in transaction mode.",
            hint=hint,
            id="django_pgbroker.W001",
        )
        for option, hint in _KEPT.items()
        if given["OPTIONS"].get(option) not in (None, "")
    ]
    if not given.get("DISABLE_SERVER_SIDE_CURSORS"):
        messages.append(
            Concern(
                f"DATABASES[{alias!r}] is behind a pooler in transaction mode, where iterator() of a queryset "
                "loses its cursor.",
                hint=f"Set DATABASES[{alias!r}]['DISABLE_SERVER_SIDE_CURSORS'] to True.",
                id="django_pgbroker.W002",
            )
        )
    return messages
