"""The demo's own account for the admin."""

import secrets

from django.contrib.auth import get_user_model

USERNAME = "admin"
#: Tells the demo's account from a person's of the same name, whose password is nobody's business.
_MARK = "admin@demo.invalid"


def open_account() -> str | None:
    """Give the account ``admin`` a new random password and return it; None if somebody else owns that name."""
    users = get_user_model().objects
    user = users.filter(username=USERNAME).first() or users.create_superuser(USERNAME, _MARK)
    if user.email != _MARK:
        return None
    password = secrets.token_urlsafe(9)
    user.set_password(password)
    user.save()
    return password
