"""Who acts, and from where: a person whose permissions count, or code that is trusted. Read by every verb."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django_pgbroker.domain.errors import InvalidOption
from django_pgbroker.domain.options import read_text

if TYPE_CHECKING:  # they are models, which the public names of the package must not import
    from django.contrib.auth.base_user import AbstractBaseUser
    from django.contrib.auth.models import AnonymousUser

#: What callers may give as ``actor=``.
type Acting = str | AbstractBaseUser | AnonymousUser


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
    user: Any = None


def read_actor(actor: Acting, source: str, reason: str | None) -> Actor:
    """The checked actor of a verb.

    Args:
        actor: a user of Django, whose permissions are then checked, or a name for the audit, which is trusted.
        source: where the wish came from.
        reason: why, if it is told.

    Raises:
        InvalidOption: an actor, source or reason that cannot be shown in the audit.
    """
    user = None if isinstance(actor, str) else actor
    # what is neither a user nor a text is refused as a text
    name = str(actor.get_username()) or "anonymous" if hasattr(actor, "get_username") else actor
    named, placed = read_text("actor", name), read_text("source", source)
    if named is None or placed is None:
        raise InvalidOption("actor and source must say who acts and from where")
    return Actor(named, placed, read_text("reason", reason or None), user)
