"""Make the Django groups of the three roles, and keep their permissions complete. Called by ``pgbroker_roles``."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.apps import apps
from django.contrib.auth.models import Group, Permission
from django.db import router, transaction

from django_pgbroker.domain.errors import ConfigurationError
from django_pgbroker.domain.roles import Role
from django_pgbroker.domain.verbs import VERBS

_APP = "django_pgbroker"


@dataclass(frozen=True, slots=True)
class RoleReport:
    """What became of the group of one role.

    Args:
        group: its name.
        is_new: whether it was made.
        added: codenames of the permissions it was given.
        had: how many of those of its role it had before.
    """

    group: str
    is_new: bool
    added: tuple[str, ...]
    had: int


def list_permissions(role: Role) -> frozenset[str]:
    """Codenames of all that a role may do: see every table of the broker, and its verbs and those of lesser roles."""
    views = {f"view_{model._meta.model_name}" for model in apps.get_app_config(_APP).get_models()}
    return frozenset(views | {verb.permission for verb in VERBS if verb.role <= role})


def create_roles(*, is_trial: bool = False) -> list[RoleReport]:
    """Make the groups that are missing, and give each what it lacks; nothing that somebody added is taken away.

    Args:
        is_trial: only tell what would be done.

    Returns:
        A report a role, the least one first.

    Raises:
        ConfigurationError: the permissions do not exist yet, since migrate has not run.
        django.db.DatabaseError: as the server answered.
    """
    with transaction.atomic(using=router.db_for_write(Group)):
        return [_complete(role, is_trial=is_trial) for role in Role]


def _complete(role: Role, *, is_trial: bool) -> RoleReport:
    wanted = list_permissions(role)
    permissions = _find_permissions(wanted)
    group = Group.objects.filter(name=role.group_name).first()
    is_new = group is None
    had = set(group.permissions.values_list("pk", flat=True)) if group else set()
    missing = {codename: pk for codename, pk in permissions.items() if pk not in had}
    if not is_trial:
        # another process may make it at this moment: the name is unique
        group = group or Group.objects.get_or_create(name=role.group_name)[0]
        group.permissions.add(*missing.values())
    return RoleReport(role.group_name, is_new, tuple(sorted(missing)), len(wanted) - len(missing))


def _find_permissions(codenames: Iterable[str]) -> dict[str, int]:
    found = dict(
        Permission.objects.filter(content_type__app_label=_APP, codename__in=codenames).values_list("codename", "pk")
    )
    missing = sorted(set(codenames) - set(found))
    if missing:
        raise ConfigurationError(
            f"the permissions {', '.join(missing[:3])}{', …' if len(missing) > 3 else ''} do not exist yet; run "
            "manage.py migrate first"
        )
    return found
