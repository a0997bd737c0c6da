"""The program of a child process: it runs the jobs that its worker sends, one at a time. Started by ``pools.children``.

The main thread runs the handlers, so that a signal can end one; another thread reads, and ends the process as soon as
the worker is gone.
"""

import os
import signal
import socket
import sys
import threading
import traceback
from collections import deque
from contextlib import suppress
from importlib import import_module
from queue import SimpleQueue

import django
from django.conf import ENVIRONMENT_VARIABLE
from django.db import connections

from django_pgbroker.domain.backoff import Exponential
from django_pgbroker.domain.errors import ConfigurationError, UnknownJobType
from django_pgbroker.domain.records import ClaimedJob, Verdict
from django_pgbroker.domain.stops import JobStopped
from django_pgbroker.domain.verdicts import judge_error
from django_pgbroker.registry import discover, registry
from django_pgbroker.worker.child_frames import (
    ChildBrief,
    Frame,
    FrameReader,
    pack,
    pack_object,
    pack_verdict,
    unpack_claims,
    unpack_object,
)
from django_pgbroker.worker.child_link import ChildLink, MainRegion
from django_pgbroker.worker.child_page import ChildPage
from django_pgbroker.worker.executor import Directory, Executor
from django_pgbroker.worker.forks import protect_forks
from django_pgbroker.worker.handler_heartbeats import HandlerHeartbeats
from django_pgbroker.worker.pools.statements import StatementCanceller

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_READ_BYTES = 262_144

#: So much memory must be left for jobs under the limit.
_LEAST_ROOM_BYTES = 16 * 1_048_576

#: A child that is idle when its worker goes has so long to close its connections, one that has had enough to end.
_FAREWELL_SECONDS = 1.0


class Child:
    """One child process.

    Args:
        connection: to the worker.
        page: shared with it.
    """

    def __init__(self, connection: socket.socket, page: ChildPage) -> None:
        self._connection = connection
        self._page = page
        self._frames = FrameReader()
        self._waiting: deque[ClaimedJob] = deque()
        self._bell: SimpleQueue[bool] = SimpleQueue()
        self._briefs: SimpleQueue[ChildBrief] = SimpleQueue()
        self._sending = threading.Lock()
        self._statements = StatementCanceller()
        self._region = MainRegion(page, self._statements)
        self._directory = Directory({}, {}, {})

    def run(self) -> None:
        """Run jobs until there is no worker any more, or this process has had enough."""
        signal.signal(signal.SIGUSR1, self._region.answer)
        os.register_at_fork(after_in_child=self._become_stranger)
        protect_forks()
        threading.Thread(target=self._read, name="pgbroker-child-reader", daemon=True).start()
        brief = self._briefs.get()
        try:
            self._prepare(brief)
        except BaseException as error:
            traceback.print_exc()
            self._send(pack(Frame.FAILED, "".join(traceback.format_exception_only(error)).strip().encode()))
            _end_in_time(1)
            raise SystemExit(1) from None
        self._send(pack(Frame.READY))
        self._work(brief)
        connections.close_all()
        _end_in_time(0)

    def _prepare(self, brief: ChildBrief) -> None:
        sys.path[:] = brief.sys_path
        os.environ.pop("PYTHONPATH", None)
        if brief.python_path is not None:
            os.environ["PYTHONPATH"] = brief.python_path
        os.environ[ENVIRONMENT_VARIABLE] = brief.settings_module
        django.setup()
        for alias, places in brief.databases.items():
            if alias in connections.settings:
                connections.settings[alias].update(places)
        discover()
        self._statements.start()
        self._directory.queues = brief.queues
        self._directory.job_types = {
            type_id: registry.get(name)
            for type_id, (name, module) in brief.job_types.items()
            if _finds_job_type(name, module)
        }
        self._names = {type_id: name for type_id, (name, _) in brief.job_types.items()}
        self._directory.database = brief.database
        self._link = ChildLink(self._page, self._send)
        self._executor = Executor(self._directory, brief.result_limit_bytes, self._link, HandlerHeartbeats())
        if brief.memory_limit_mb and resource:
            limit = brief.memory_limit_mb * 1_048_576
            resource.setrlimit(resource.RLIMIT_DATA, (limit, resource.getrlimit(resource.RLIMIT_DATA)[1]))
            _require_room(brief.memory_limit_mb)

    # -------------------------------------------------------------------------------------------- the main thread

    def _work(self, brief: ChildBrief) -> None:
        ran = 0
        while True:
            try:
                claim = self._waiting.popleft()
            except IndexError:
                if self._bell.get():
                    continue
                return
            verdict = self._perform(claim)
            self._link.flush()
            self._send(pack_verdict(verdict))
            self._page.end()
            ran += 1
            if ran == brief.max_jobs or _is_out_of_memory(verdict):
                self._send(pack(Frame.RETIRED))
                return

    def _perform(self, claim: ClaimedJob) -> Verdict:
        token = claim.lease_token
        self._region.prepare(token)
        self._page.begin(token)
        if claim.job_type_id not in self._directory.job_types:
            name = self._names.get(claim.job_type_id, claim.job_type_id)
            error = UnknownJobType(f"child processes know no job type {name!r}: register it in a jobs.py of an app")
            return judge_error(claim, error, 0, Exponential())
        try:
            return self._executor.execute(claim, self._region)
        except JobStopped as stopped:  # the signal came between the handler and its verdict
            return self._executor.judge_abandoned(claim, stopped.stop, 0)
        finally:
            self._region.leave()

    def _send(self, data: bytes) -> None:
        try:
            with self._sending:
                self._connection.sendall(data)
        except OSError:
            os._exit(1)  # no worker is there that could hear it

    # -------------------------------------------------------------------------------------------- the reader

    def _read(self) -> None:
        with suppress(OSError):
            while data := self._connection.recv(_READ_BYTES):
                for frame, content in self._frames.feed(data):
                    self._obey(frame, content)
        self._bell.put(False)
        if self._page.occupation:
            os.killpg(0, signal.SIGKILL)  # with what the handler has started: nobody would wait for it
        threading.Event().wait(_FAREWELL_SECONDS)
        os._exit(0)

    def _obey(self, frame: Frame, content: bytes) -> None:
        match frame:
            case Frame.BRIEF:
                self._briefs.put(unpack_object(content))
            case Frame.CLAIMS:
                claims, tenants = unpack_claims(content)
                self._directory.tenants.update(tenants)
                self._waiting.extend(claims)
                self._bell.put(True)
            case Frame.RECALL:
                self._send(pack_object(Frame.RECALL, (content, self._give_back())))

    def _give_back(self) -> list[int]:
        """The tokens of claims that have not begun, and will not here."""
        tokens = []
        with suppress(IndexError):
            while True:
                tokens.append(self._waiting.pop().lease_token)
        return tokens

    # -------------------------------------------------------------------------------------------- forks

    def _become_stranger(self) -> None:
        """In a fork of a handler's: it is no child of the worker, and dies by the usual signals."""
        with suppress(ValueError):
            for number in (signal.SIGTERM, signal.SIGUSR1):
                signal.signal(number, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
        self._connection.close()


def _end_in_time(status: int) -> None:
    """See to the end of this process: threads that handlers have started would keep it, and its place, for ever."""
    timer = threading.Timer(_FAREWELL_SECONDS, os._exit, [status])
    timer.daemon = True
    timer.start()


def _require_room(limit_mb: int) -> None:
    """Refuse a limit under which no job could succeed.

    Raises:
        ConfigurationError: this process fills it already.
    """
    try:
        bytearray(_LEAST_ROOM_BYTES)
    except MemoryError:
        raise ConfigurationError(
            f"PGBROKER['CHILD_MEMORY_LIMIT_MB'] is {limit_mb}, which a child process fills before its first job: "
            "raise it"
        ) from None


def _finds_job_type(name: str, module: str) -> bool:
    """A job type that is registered outside of a jobs.py comes with the module of its handler."""
    if not registry.knows(name):
        with suppress(Exception):
            import_module(module)
    return registry.knows(name)


def _is_out_of_memory(verdict: Verdict) -> bool:
    """After that the heap may be too full for any other job."""
    return "MemoryError" in (verdict.error.error_class if verdict.error else verdict.reason or "")


def main(arguments: list[str]) -> None:
    """Run as a process.

    Args:
        arguments: the file descriptors of the socket and of the page.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        # the worker decides; not SIG_IGN, which programs that a handler starts would inherit
        signal.signal(number, lambda _number, _frame: None)
    socket_descriptor, page_descriptor = map(int, arguments)
    os.set_inheritable(socket_descriptor, False)
    page = ChildPage(page_descriptor)
    os.close(page_descriptor)
    Child(socket.socket(fileno=socket_descriptor), page).run()


if __name__ == "__main__":
    main(sys.argv[1:])
