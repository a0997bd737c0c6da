"""Write what the child processes of a worker are told first: this process's settings, places and job types."""

import os
import sys

from django.conf import ENVIRONMENT_VARIABLE
from django.db import connections

from django_pgbroker.conf import Settings
from django_pgbroker.domain.errors import ConfigurationError
from django_pgbroker.worker.child_frames import ChildBrief
from django_pgbroker.worker.executor import Directory

#: What may differ between the settings module and this process, as in a test run.
_PLACES = ("NAME", "USER", "PASSWORD", "HOST", "PORT")


def write_brief(directory: Directory, settings: Settings) -> ChildBrief:
    """The brief for children of this process.

    Raises:
        ConfigurationError: Django was set up without a settings module, which a fresh process could not repeat.
    """
    settings_module = os.environ.get(ENVIRONMENT_VARIABLE)
    if not settings_module:
        raise ConfigurationError(
            f"executor='process' starts fresh processes, which need {ENVIRONMENT_VARIABLE}: set it, or use threads"
        )
    return ChildBrief(
        settings_module=settings_module,
        sys_path=sys.path.copy(),
        python_path=os.environ.get("PYTHONPATH"),
        databases={
            alias: {key: places[key] for key in _PLACES if key in places}
            for alias, places in ((alias, connections.settings[alias]) for alias in connections.settings)
        },
        job_types={
            type_id: (job_type.name, job_type.handler.__module__) for type_id, job_type in directory.job_types.items()
        },
        queues=dict(directory.queues),
        database=directory.database,
        result_limit_bytes=settings.result_limit_bytes,
        memory_limit_mb=settings.child_memory_limit_mb,
        max_jobs=settings.child_max_jobs,
    )
