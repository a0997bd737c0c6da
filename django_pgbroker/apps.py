"""The Django app: connects the migrate hooks and checks, and finds the job types of the project."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate, pre_migrate

from django_pgbroker.conf import get_settings
from django_pgbroker.registry import discover


class PgbrokerConfig(AppConfig):
    """Configuration of django_pgbroker."""

    name = "django_pgbroker"
    label = "django_pgbroker"
    verbose_name = "PostgreSQL broker"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Called by Django when all models are loaded.

        Raises:
            ConfigurationError: ``settings.PGBROKER`` is wrong; no process starts with it.
        """
        get_settings()
        # Django demands it: these modules need the loaded app registry.
        from django_pgbroker import checks  # noqa: F401, PLC0415
        from django_pgbroker.migrations._hooks import (  # noqa: PLC0415
            build_unmigrated_schema,
            prepare_migrated_schema,
        )

        pre_migrate.connect(build_unmigrated_schema, sender=self)
        post_migrate.connect(prepare_migrated_schema, sender=self)
        discover()
