"""What a running job in a child process asks of its worker: all by the shared page, without a word between them."""

import threading
from collections.abc import Callable
from datetime import datetime
from types import FrameType

from django_pgbroker.domain.progress import Progress
from django_pgbroker.domain.records import ClaimedJob
from django_pgbroker.domain.stops import JobStopped, Stop
from django_pgbroker.worker.child_frames import Frame, pack_object
from django_pgbroker.worker.child_page import ChildPage
from django_pgbroker.worker.link import find_deadline
from django_pgbroker.worker.pools.statements import StatementCanceller

_PROGRESS_SECONDS = 0.2


class ChildLink:
    """Answers from the page; see ``JobLink``.

    Args:
        page: shared with the worker.
        send: sends it a frame, from any thread.
    """

    def __init__(self, page: ChildPage, send: Callable[[bytes], None]) -> None:
        self._page = page
        self._send = send
        self._sending = threading.Lock()
        self._newest: bytes | None = None
        self._timer: threading.Timer | None = None

    def find_stop(self, lease_token: int) -> Stop | None:
        """Why the handler of this claim should end, if it should."""
        return self._page.find_stop(lease_token)

    def deadline_of(self, claim: ClaimedJob, elapsed_seconds: float) -> datetime | None:
        """When an attempt that began so long ago must be over, by the clock of the database."""
        return find_deadline(claim, elapsed_seconds, self._page.now())

    def beat(self, lease_token: int) -> None:
        """The handler of this claim gets on."""
        self._page.beat()

    def report_progress(self, job_id: int, lease_token: int, progress: Progress) -> None:
        """How far the handler of this claim is: the newest is sent a few times a second."""
        with self._sending:
            self._newest = pack_object(Frame.PROGRESS, (job_id, lease_token, progress))
            if self._timer is None:
                self._timer = threading.Timer(_PROGRESS_SECONDS, self.flush)
                self._timer.daemon = True
                self._timer.start()

    def flush(self) -> None:
        """Send the newest progress, before the verdict of its job at the latest."""
        if self._newest is None:
            return
        with self._sending:
            frame, self._newest, self._timer = self._newest, None, None
        if frame is not None:
            self._send(frame)

    def mark_memory(self, job_id: int, lease_token: int) -> None:
        """This job remembers steps or a cursor."""
        self._send(pack_object(Frame.MEMORY, (job_id, lease_token)))


class MainRegion:
    """The part of the main thread's life in which a handler runs; a signal ends it there and nowhere else.

    Args:
        page: names the claim that is to end.
        statements: ends what the handler waits for at the server.
    """

    def __init__(self, page: ChildPage, statements: StatementCanceller) -> None:
        self._page = page
        self._statements = statements
        self._token = 0
        self._is_inside = False
        self._answered = 0

    def prepare(self, token: int) -> None:
        """The next handler is that of this claim."""
        self._token = token

    def enter(self) -> None:
        """The handler begins."""
        self._is_inside = True

    def leave(self) -> None:
        """The handler has ended."""
        while self._is_inside:
            try:
                self._is_inside = False
            except JobStopped:
                continue

    def answer(self, _number: int, _frame: FrameType | None) -> None:
        """The signal: raise ``JobStopped`` in the handler that is meant, once for each call."""
        calls = self._page.calls
        if not self._is_inside or calls == self._answered:
            return
        if (stop := self._page.find_stop(self._token)) is None:
            return
        self._answered = calls
        self._statements.cancel(threading.get_ident())
        if self._is_inside:
            raise JobStopped(stop)
