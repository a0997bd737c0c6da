"""What time it is by the database, which all times of jobs are by. For commands that are told spans."""

from datetime import datetime

from django_pgbroker.models import Tenant
from django_pgbroker.models.clock import Clock


def read_clock(using: str) -> datetime:
    """The time of the database of this alias.

    Raises:
        django.db.DatabaseError: it did not answer.
    """
    # the tenant `default` always exists; Django asks no expression without a table
    now: datetime = Tenant.objects.using(using).values_list(Clock(), flat=True)[:1].get()
    return now
