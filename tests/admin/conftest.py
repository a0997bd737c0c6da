"""Browsers of operators and of staff with chosen permissions."""

from collections.abc import Callable

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client

from django_pgbroker.models import JobType, Queue


@pytest.fixture(autouse=True)
def without_declared_names(db: None) -> None:
    """Migrate declares names; these tests say themselves what there is."""
    Queue.objects.all().delete()
    JobType.objects.all().delete()


@pytest.fixture
def operator(db: None) -> Client:
    """A superuser's browser."""
    client = Client()
    client.force_login(get_user_model().objects.create_superuser("root", password="x"))
    return client


@pytest.fixture
def staff_with(db: None) -> Callable[..., Client]:
    """Browsers of staff who hold the named permissions and nothing else."""

    def log_in(*codenames: str) -> Client:
        user = get_user_model().objects.create_user(f"staff-{'-'.join(codenames)}", password="x", is_staff=True)
        permissions = Permission.objects.filter(content_type__app_label="django_pgbroker", codename__in=codenames)
        assert len(permissions) == len(codenames)
        user.user_permissions.set(permissions)
        client = Client()
        client.force_login(user)
        return client

    return log_in
