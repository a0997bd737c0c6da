"""Settings of the processes of a drill: those of a scenario, and an app that can end its process at a chosen point."""

from tests.scenarios.settings import *  # noqa: F403
from tests.scenarios.settings import INSTALLED_APPS as _INSTALLED_APPS

INSTALLED_APPS = [*_INSTALLED_APPS, "tests.drills"]
