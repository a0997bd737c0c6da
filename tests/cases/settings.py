"""Settings of the processes that a case starts: those of the scenarios, and the job types of the cases."""

from tests.scenarios.settings import *  # noqa: F403
from tests.scenarios.settings import INSTALLED_APPS as _INSTALLED_APPS

INSTALLED_APPS = [*_INSTALLED_APPS, "tests.cases"]
