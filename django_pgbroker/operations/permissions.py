"""Who may do what: the one function that decides, for code, commands and the admin."""

from functools import cache
from typing import Any

from django.core.signals import setting_changed
from django.utils.module_loading import import_string

from django_pgbroker.conf import get_settings
from django_pgbroker.domain.errors import ConfigurationError, NotPermitted
from django_pgbroker.domain.verbs import Verb
from django_pgbroker.operations.actors import Actor, Person

_APP = "django_pgbroker"


def may(user: Person, verb: Verb, *, queue: str | None = None, tenant: str | None = None) -> bool:
    """Whether a user may do this: by Django's permission, and by the project's hook where there is one.

    Args:
        user: of Django.
        verb: what is to be done.
        queue: to which queue, or to a job in which queue; ``None`` asks in general, as for showing a button.
        tenant: to a job of which tenant; ``None`` asks in general.
    """
    if not user.is_active or not user.has_perm(f"{_APP}.{verb.permission}"):
        return False
    hook = _load_hook(get_settings().permission_hook)
    return hook is None or bool(hook(user, verb.name, queue=queue, tenant=tenant))


def is_allowed(actor: Actor, verb: Verb, *, queue: str | None = None, tenant: str | None = None) -> bool:
    """As ``may``, for whoever acts; code that is trusted may do everything."""
    return actor.user is None or may(actor.user, verb, queue=queue, tenant=tenant)


def require(actor: Actor, verb: Verb, *, queue: str | None = None, tenant: str | None = None) -> None:
    """Go on only if the actor may do this.

    Raises:
        NotPermitted: the actor may not; the message names the permission.
    """
    if is_allowed(actor, verb, queue=queue, tenant=tenant):
        return
    where = "".join([f" in queue {queue!r}" if queue else "", f" of tenant {tenant!r}" if tenant else ""])
    raise NotPermitted(
        f"{actor.name!r} is not permitted to do {verb.name!r}{where}: this needs the permission "
        f"'{_APP}.{verb.permission}'"
        + (" and the consent of PERMISSION_HOOK" if get_settings().permission_hook else "")
    )


@cache
def _load_hook(path: str | None) -> Any:
    if path is None:
        return None
    try:
        hook = import_string(path)
    except ImportError as error:
        raise ConfigurationError(f"PGBROKER['PERMISSION_HOOK'] {path!r} cannot be imported: {error}") from error
    if not callable(hook):
        raise ConfigurationError(f"PGBROKER['PERMISSION_HOOK'] {path!r} is no callable")
    return hook


def _forget_hook(**_: object) -> None:
    _load_hook.cache_clear()


setting_changed.connect(_forget_hook)
