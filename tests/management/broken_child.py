"""Settings with which a command starts, and a worker process under it does not."""

import sys

from django.core.exceptions import ImproperlyConfigured

from tests.scenarios.settings import *  # noqa: F403

if "--process" in sys.argv:
    raise ImproperlyConfigured("broken for worker processes")
