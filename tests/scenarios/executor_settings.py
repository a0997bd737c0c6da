"""Settings of workers that know the handlers of ``tests.scenarios.executors`` too."""

from tests.scenarios.settings import *  # noqa: F403
from tests.scenarios.settings import INSTALLED_APPS as _INSTALLED_APPS

INSTALLED_APPS = [*_INSTALLED_APPS, "tests.scenarios.executors"]
