"""The handlers of ``tests.scenarios.executors`` for one test: elsewhere workers would start an event loop for them."""

from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

import pytest

from django_pgbroker.operations.job_types import DeclaredJob
from django_pgbroker.registry import registry


@pytest.fixture
def executor_jobs() -> Iterator[ModuleType]:
    """The module, with its job types registered in this process."""
    module = import_module("tests.scenarios.executors.jobs")
    declared = [each for each in vars(module).values() if isinstance(each, DeclaredJob)]
    for job_type in declared:
        if not registry.knows(job_type.name):
            registry.register(job_type)
    yield module
    for job_type in declared:
        registry.forget(job_type.name)
