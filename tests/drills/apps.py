"""The Django app of the drills; in a process that is to crash it sets the trap."""

from django.apps import AppConfig

from tests.drills import crash_points


class DrillsConfig(AppConfig):
    """Finds the jobs and commands of the drills."""

    name = "tests.drills"
    label = "drills"

    def ready(self) -> None:
        """Called by Django in every process of a drill."""
        crash_points.install()
