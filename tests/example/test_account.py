"""The demo's account for the admin."""

import pytest
from django.contrib.auth import authenticate, get_user_model

from example_project.documents.account import USERNAME, open_account

pytestmark = pytest.mark.django_db


def test_every_run_has_a_new_password_for_the_same_account() -> None:
    first = open_account()
    second = open_account()

    assert first != second
    assert authenticate(username=USERNAME, password=first) is None
    account = authenticate(username=USERNAME, password=second)
    assert account is not None
    assert account.is_superuser
    assert get_user_model().objects.count() == 1


def test_the_account_of_a_person_with_that_name_is_left_alone() -> None:
    get_user_model().objects.create_superuser(USERNAME, "somebody@example.org", "secret of somebody")

    assert open_account() is None

    assert authenticate(username=USERNAME, password="secret of somebody") is not None
