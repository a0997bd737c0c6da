"""What a running job remembers from its earlier attempts, finished steps and a cursor. For ``JobContext``."""

import json
from typing import Any

from asgiref.sync import sync_to_async
from django.core.exceptions import SynchronousOnlyOperation

from django_pgbroker.domain.errors import InvalidName, InvalidOption, show_value
from django_pgbroker.domain.payload import encode_memory
from django_pgbroker.domain.stops import JobStopped, Stop, StopKind
from django_pgbroker.store.gateway import CallerGateway
from django_pgbroker.store.steps import CURSOR, find_steps, record_step
from django_pgbroker.worker.link import JobLink

NAME_LIMIT = 200

_LOST = Stop(StopKind.LOST, "the lease is lost: nothing more is remembered for this job")


class JobMemory:
    """Reads once in an attempt, at the first use, and writes each step as it is finished.

    Both on Django's connection of the handler, so that inside ``transaction.atomic()`` a step is remembered together
    with what it has done, or not at all.

    Args:
        job_id: the running job.
        lease_token: of its claim.
        link: to the worker that holds it.
        database: the alias that holds the jobs.
        limit_bytes: the most JSON that one result may take.
    """

    def __init__(self, job_id: int, lease_token: int, link: JobLink, database: str, limit_bytes: int) -> None:
        self._job_id = job_id
        self._lease_token = lease_token
        self._link = link
        self._database = database
        self._limit = limit_bytes
        self._known: dict[str, Any] = {}
        self._is_read = False
        #: Steps of this attempt that are under way or done.
        self._entered: set[str] = set()

    def read(self) -> None:
        """Recall the earlier attempts, unless that has been done."""
        if not self._is_read:
            # the worker marks the job: the handler's own transaction would hold the job's row for too long
            self._link.mark_memory(self._job_id, self._lease_token)
            found = find_steps(CallerGateway(self._database), self._job_id)
            self._known = {name: json.loads(text) for name, text in found.items()}
            self._is_read = True

    async def aread(self) -> None:
        """The same in async code."""
        if not self._is_read:
            await sync_to_async(self.read)()

    @property
    def cursor(self) -> Any:
        """The cursor, after ``read``."""
        return self._known.get(CURSOR)

    def save_cursor(self, value: object) -> None:
        """Replace the cursor.

        Raises:
            JobStopped: the handler must end; when the worker drains, only after a save that no rollback can undo.
        """
        self.read()
        self._store(CURSOR, value, "cursor")
        stop = self._link.find_stop(self._lease_token)
        is_final = stop is None or stop.kind is not StopKind.DRAINING or not self._is_in_transaction()
        if stop and is_final:
            raise JobStopped(stop)

    def _is_in_transaction(self) -> bool:
        return CallerGateway(self._database).is_in_transaction

    def enter(self, name: str) -> bool:
        """Begin a step, after ``read``.

        Returns:
            Whether it is new.

        Raises:
            InvalidOption: it was entered before in this attempt.
            JobStopped: the handler should end.
        """
        if stop := self._link.find_stop(self._lease_token):
            raise JobStopped(stop)
        if name in self._entered:
            raise InvalidOption(f"step({name!r}) was entered before in this attempt: give each step a name of its own")
        self._entered.add(name)
        return name not in self._known

    def forget(self, name: str) -> None:
        """A step has failed, and may be entered again."""
        self._entered.discard(name)

    def recall(self, name: str) -> Any:
        """The result of a step that is done."""
        return self._known[name]

    def store(self, name: str, result: object) -> None:
        """Remember a step that is done.

        Raises:
            InvalidPayload: the result is no strict JSON.
            JobStopped: the lease is lost; nothing was stored.
        """
        try:
            self._store(name, result, f"step({name!r}).result")
        except BaseException:
            self.forget(name)
            raise

    def _store(self, name: str, value: object, path: str) -> None:
        text = encode_memory(value, path, self._limit)
        if not record_step(CallerGateway(self._database), self._job_id, self._lease_token, name, text):
            raise JobStopped(_LOST)
        self._known[name] = json.loads(text)


class Step:
    """One step of a job, as a ``with`` or an ``async with`` block; see ``JobContext.step``."""

    def __init__(self, memory: JobMemory, name: str) -> None:
        if not (isinstance(name, str) and 0 < len(name) <= NAME_LIMIT and name.isprintable()):
            raise InvalidName(f"step({show_value(name)}): give a text of 1 to {NAME_LIMIT} printable characters")
        self._memory = memory
        self.name = name
        #: Whether no attempt has finished it yet, so that it has to be done now.
        self.is_new = True
        self._result: Any = None

    @property
    def result(self) -> Any:
        """What the step came to, now or in an earlier attempt; JSON, None if it was never set."""
        return self._result

    @result.setter
    def result(self, value: Any) -> None:
        if not self.is_new:
            raise InvalidOption(
                f"step({self.name!r}) is done and its result remembered: do its work, and set its result, under "
                "`if step.is_new:`"
            )
        self._result = value

    def __enter__(self) -> "Step":
        """Recall it, or begin it."""
        try:
            self._memory.read()
        except SynchronousOnlyOperation as error:
            raise SynchronousOnlyOperation(
                f"{error} In an async handler write: async with ctx.step({self.name!r})"
            ) from error
        return self._enter()

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        """Remember it, unless it failed."""
        if error is not None:
            self._memory.forget(self.name)
        elif self.is_new:
            self._memory.store(self.name, self._result)

    async def __aenter__(self) -> "Step":
        """Recall it, or begin it."""
        await self._memory.aread()
        return self._enter()

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """Remember it, unless it failed."""
        if error is None and self.is_new:
            await sync_to_async(self.__exit__)(kind, error, traceback)
        else:
            self.__exit__(kind, error, traceback)

    def _enter(self) -> "Step":
        self.is_new = self._memory.enter(self.name)
        if not self.is_new:
            self._result = self._memory.recall(self.name)
        return self
