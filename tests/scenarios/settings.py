"""Settings of the processes that a scenario starts: its database and the broker's settings come by the environment."""

import json
import os

from example_project.settings import *  # noqa: F403
from example_project.settings import INSTALLED_APPS as _INSTALLED_APPS

INSTALLED_APPS = [*_INSTALLED_APPS, "tests.scenarios"]

DATABASES = {"default": json.loads(os.environ["SCENARIO_DATABASE"])}

PGBROKER = json.loads(os.environ["SCENARIO_PGBROKER"])

LOGGING = {
    "version": 1,
    "formatters": {"plain": {"format": "%(levelname)s %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "loggers": {"django_pgbroker": {"handlers": ["console"], "level": "INFO"}},
}
