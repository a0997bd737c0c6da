"""Settings of the processes that a test of the pooler starts: those of the scenarios, and a direct alias."""

import json
import os

from tests.scenarios.settings import *  # noqa: F403
from tests.scenarios.settings import DATABASES as _DATABASES

DATABASES = {**_DATABASES, "direct": json.loads(os.environ["POOLER_DIRECT"])}
