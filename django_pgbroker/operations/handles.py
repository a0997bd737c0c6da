"""Follow one job: how it stands and what it answered. Returned by ``enqueue()``."""

import json
from dataclasses import dataclass, field
from typing import Any

from asgiref.sync import sync_to_async
from django.core.exceptions import SynchronousOnlyOperation
from django.db import DatabaseError, InterfaceError

from django_pgbroker.conf import get_settings
from django_pgbroker.domain.errors import JobFailed, JobNotFinished, JobNotFound, ResultNotStored
from django_pgbroker.domain.states import JobState
from django_pgbroker.operations.cancel import CancelResult, cancel_job
from django_pgbroker.operations.databases import open_caller_gateway
from django_pgbroker.registry import registry
from django_pgbroker.store.errors import wrap_database_error
from django_pgbroker.store.lookup import FoundJob, find_job


@dataclass(frozen=True, slots=True)
class JobHandle:
    """One job by its id; cheap, and may be made anew from a stored id.

    Args:
        id: of the job.
        using: alias of its database; by default ``PGBROKER["DATABASE"]``.
    """

    id: int
    using: str = field(default_factory=lambda: get_settings().database)

    def status(self) -> JobState:
        """How the job stands now, as the caller's transaction sees it.

        Raises:
            JobNotFound: there is no such job.
        """
        return self._find().state

    def job_type(self) -> str:
        """The name of its job type.

        Raises:
            JobNotFound: there is no such job.
        """
        return self._find().job_type

    def result(self) -> Any:
        """What the handler returned.

        Raises:
            JobNotFinished: it still waits or runs.
            JobFailed: it is dead, cancelled or expired.
            ResultNotStored: it completed, but its result was not kept.
            JobNotFound: there is no such job.
        """
        found = self._find()
        if not found.state.is_finished:
            raise JobNotFinished(f"job {self.id} is {found.state.label}; ask for the result when it has finished")
        if found.state is not JobState.COMPLETED:
            raise JobFailed(self.id, found.state.label, found.error_class, found.error_message or found.reason)
        if found.result is not None:
            return json.loads(found.result)
        if found.reason:
            raise ResultNotStored(f"job {self.id} completed, {found.reason}")
        if _keeps_no_result(found.job_type):
            raise ResultNotStored(f"job {self.id} completed; {found.job_type!r} is declared with store_result=False")
        return None

    def cancel(self, *, actor: str, reason: str | None = None) -> CancelResult:
        """Cancel the job, or have its running handler end; see ``cancel_job``."""
        return cancel_job(self.id, actor=actor, reason=reason, using=self.using)

    async def acancel(self, *, actor: str, reason: str | None = None) -> CancelResult:
        """``cancel`` for async code."""
        return await sync_to_async(self.cancel, thread_sensitive=True)(actor=actor, reason=reason)

    async def astatus(self) -> JobState:
        """``status`` for async code."""
        return await sync_to_async(self.status, thread_sensitive=True)()

    async def aresult(self) -> Any:
        """``result`` for async code."""
        return await sync_to_async(self.result, thread_sensitive=True)()

    def _find(self) -> FoundJob:
        try:
            found = find_job(open_caller_gateway(self.using), self.id)
        except SynchronousOnlyOperation as error:
            raise SynchronousOnlyOperation(
                f"{error} In async code write: await handle.astatus() or handle.aresult()"
            ) from error
        except (DatabaseError, InterfaceError) as error:
            raise wrap_database_error(error, f"look up job {self.id}") from error
        if found is None:
            raise JobNotFound(
                f"there is no job {self.id} in database {self.using!r}: never committed, or its history is pruned"
            )
        return found


def _keeps_no_result(name: str) -> bool:
    return name in registry.names() and not registry.get(name).store_result
