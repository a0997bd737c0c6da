"""Browsers of operators and of staff with chosen permissions."""

from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client

from django_pgbroker import job
from django_pgbroker.models import JobType, Queue
from django_pgbroker.registry import registry


@pytest.fixture(autouse=True)
def without_declared_names(db: None) -> None:
    """Migrate declares names; these tests say themselves what there is."""
    Queue.objects.all().delete()
    JobType.objects.all().delete()


@pytest.fixture
def operator(db: None) -> Client:
    """A superuser's browser."""
    client = Client()
    client.force_login(get_user_model().objects.create_superuser("root"))
    return client


@pytest.fixture
def staff_with(db: None) -> Callable[..., Client]:
    """Browsers of staff who hold the named permissions and nothing else."""

    def log_in(*codenames: str) -> Client:
        user = get_user_model().objects.create_user(f"staff-{'-'.join(codenames)}"[:150], is_staff=True)
        permissions = Permission.objects.filter(content_type__app_label="django_pgbroker", codename__in=codenames)
        assert len(permissions) == len(codenames)
        user.user_permissions.set(permissions)
        client = Client()
        client.force_login(user)
        return client

    return log_in


@pytest.fixture
def receipts() -> Iterator[None]:
    """A handler for the job type of the factories."""

    @job("shop.send_receipt")
    def send_receipt(order_id: int, note: str | None = None) -> None: ...

    yield
    registry.forget("shop.send_receipt")
