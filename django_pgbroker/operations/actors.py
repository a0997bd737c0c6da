"""Who acts, and from where: a person whose permissions count, or code that is trusted. Read by every verb."""

from dataclasses import dataclass
from typing import Any, Protocol

from django_pgbroker.domain.errors import InvalidOption, show_value
from django_pgbroker.domain.options import read_text


class Person(Protocol):
    """A user of Django, whatever the project's model."""

    pk: Any
    is_active: Any

    def get_username(self) -> str:
        """What the audit calls the user."""

    def has_perm(self, perm: str, obj: Any = None) -> bool:
        """Whether the user holds a permission of Django."""


#: What callers may give as ``actor=``.
type Acting = str | Person


@dataclass(frozen=True)
class Actor:
    """Who acts.

    Args:
        name: for the audit, up to 200 characters.
        source: where the wish came from: ``ui``, ``command``, ``code`` or ``duty``.
        reason: why, up to 200 characters.
        user: whose permissions decide; ``None`` for code that is trusted.
    """

    name: str
    source: str
    reason: str | None = None
    user: Person | None = None


def read_actor(actor: Acting, source: str, reason: str | None) -> Actor:
    """The checked actor of a verb.

    Args:
        actor: a user of Django, whose permissions are then checked, or a name for the audit, which is trusted.
        source: where the wish came from.
        reason: why, if it is told.

    Raises:
        InvalidOption: an actor, source or reason that cannot be shown in the audit.
    """
    if isinstance(actor, str):
        user, name = None, actor
    elif hasattr(actor, "has_perm"):
        user, name = actor, str(actor.get_username()) or "anonymous"
    else:
        raise InvalidOption(f"actor must be a user of Django or a name, not {show_value(actor)}")
    named, placed = read_text("actor", name), read_text("source", source)
    if named is None or placed is None:
        raise InvalidOption("actor and source must say who acts and from where")
    return Actor(named, placed, read_text("reason", reason or None), user)
