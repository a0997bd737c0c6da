"""The job type that is measured in child processes, which find it by importing this module; nothing else does."""

from django_pgbroker.bench.handlers import do_nothing
from django_pgbroker.bench.scratch import JOB_TYPE, QUEUE
from django_pgbroker.domain.executor_kinds import ExecutorKind
from django_pgbroker.registry import JobType, registry


def do_nothing_elsewhere(recipient: str, note: str) -> None:
    """The same as in a thread; its module is this one."""
    do_nothing(recipient, note)


registry.register(JobType(name=JOB_TYPE, handler=do_nothing_elsewhere, queue=QUEUE, executor=ExecutorKind.PROCESS))
