"""One child process as its worker sees it: the process, the socket, the page, and the claims that it holds."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from django_pgbroker.domain.records import ClaimedJob
from django_pgbroker.domain.stops import Stop
from django_pgbroker.worker.child_frames import Frame, FrameReader, pack, pack_claims
from django_pgbroker.worker.child_page import ChildPage, Occupation, make_page_file

_READ_BYTES = 262_144
_PROGRAM = "django_pgbroker.worker.child"


class ChildProcess:
    """A child from its start to its burial.

    The thread of the pool alone talks to it; any thread may look at its page, interrupt it and kill it.

    Args:
        brief: its first frame.

    Raises:
        OSError: the system grants no further process.
    """

    def __init__(self, brief: bytes) -> None:
        #: Claims without a verdict, in the order in which they begin. Whoever takes one out has the say about it.
        self.held: dict[int, ClaimedJob] = {}
        self.is_ready = False
        self.is_retired = False
        self.has_run = False
        self.is_recalled = False
        #: The claim that was given up; the process was killed for it.
        self.doomed_for: int | None = None
        #: What it said of why it could not start.
        self.failure: str | None = None
        self._frames = FrameReader()
        self._outgoing = bytearray(brief)
        self._telling = threading.Lock()
        self.connection, its_end = socket.socketpair()
        page_file = make_page_file()
        try:
            self.page = ChildPage(page_file)
            self.process = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-m", _PROGRAM, str(its_end.fileno()), str(page_file)],
                stdin=subprocess.DEVNULL,
                pass_fds=(its_end.fileno(), page_file),
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            )
        except BaseException:
            self.connection.close()
            raise
        finally:
            its_end.close()
            os.close(page_file)
        self.connection.setblocking(False)

    @property
    def running(self) -> tuple[ClaimedJob, Occupation] | None:
        """The claim whose handler runs at this moment."""
        occupation = self.page.occupation
        if occupation is None or (claim := self.held.get(occupation.token)) is None:
            return None
        return claim, occupation

    # -------------------------------------------------------------------------------------------- words

    def give(self, claims: Sequence[ClaimedJob], tenants: Mapping[int, str]) -> None:
        """Have it run these after those that it holds."""
        self.held.update((claim.lease_token, claim) for claim in claims)
        self._outgoing += pack_claims(claims, tenants)
        self.flush()

    def recall(self, purpose: bytes) -> None:
        """Ask for the claims that have not begun; the answer comes with the purpose."""
        self.is_recalled = True
        self._outgoing += pack(Frame.RECALL, purpose)
        self.flush()

    def flush(self) -> None:
        """Send as much as it takes now."""
        with suppress(OSError):  # it is full, or gone, which its reader will see
            while self._outgoing:
                del self._outgoing[: self.connection.send(self._outgoing)]

    @property
    def has_unsent(self) -> bool:
        """Whether ``flush`` is to be called again."""
        return bool(self._outgoing)

    def read(self) -> Iterator[tuple[Frame, bytes]]:
        """The frames that have come. It ends where there is nothing more now.

        Raises:
            EOFError: nothing will come any more.
        """
        while True:
            try:
                data = self.connection.recv(_READ_BYTES)
            except BlockingIOError:
                return
            except OSError:
                raise EOFError from None
            if not data:
                raise EOFError
            yield from self._frames.feed(data)

    # -------------------------------------------------------------------------------------------- stops

    def tell(self, token: int, stop: Stop) -> None:
        """Let the handler of this claim know, if it asks."""
        with self._telling:
            self.page.tell(token, stop)

    def interrupt(self, token: int, stop: Stop) -> None:
        """End the handler of this claim by a signal; another one will not notice."""
        with self._telling:
            self.page.tell(token, stop)
            self.page.call()
        with suppress(OSError):
            self.process.send_signal(signal.SIGUSR1)

    def hang_up(self) -> None:
        """It ends by itself when it notices, even in the middle of a handler."""
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def kill(self) -> None:
        """End it and what its handlers have started, at once."""
        if self.process.poll() is None:
            with suppress(OSError):
                os.killpg(self.process.pid, signal.SIGKILL)

    def describe_end(self) -> str:
        """How the process ended, once it has: ``by signal 9 (SIGKILL)`` or ``with status 1``."""
        status = self.process.returncode
        if status is None:
            return "in an unknown way"
        if status >= 0:
            return f"with status {status}"
        try:
            name = f" ({signal.Signals(-status).name})"
        except ValueError:
            name = ""
        return f"by signal {-status}{name}"
