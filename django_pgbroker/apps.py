"""The Django app: connects the migrate hooks and checks, and finds the job types of the project."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate, pre_migrate


class PgbrokerConfig(AppConfig):
    """Configuration of django_pgbroker."""

    name = "django_pgbroker"
    label = "django_pgbroker"
    verbose_name = "PostgreSQL broker"
    default_auto_field = "django.db.models.BigAutoField"
