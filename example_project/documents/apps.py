"""App configuration of the example."""

from django.apps import AppConfig


class DocumentsConfig(AppConfig):
    name = "example_project.documents"
    default_auto_field = "django.db.models.BigAutoField"
