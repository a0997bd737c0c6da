"""A TCP proxy before PostgreSQL that can swallow what one kind of connection is sent, without a FIN or a reset."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

from django.db import connections

from tests.maintenance.waiting import wait_until
from tests.scenarios.processes import database_of_this_run

_SIZE = 65_536

#: A connection on which the server spoke last, and that long ago, is in no statement.
_QUIET_SECONDS = 0.1


#: With this alone psycopg sometimes ends a pipeline that is answered already; the server says nothing to it.
_FLUSH = b"H\x00\x00\x00\x04"


class Flow:
    """One connection through the proxy; its application name is in the first packet."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.ends = (client, server)
        self.begin = b""
        self.passes = threading.Event()
        self.passes.set()
        self.is_open = True
        self._answered_at: float | None = None

    @property
    def is_quiet(self) -> bool:
        """Whether no statement is on its way."""
        return self._answered_at is not None and time.monotonic() - self._answered_at > _QUIET_SECONDS

    def note(self, *, is_answer: bool) -> None:
        self._answered_at = time.monotonic() if is_answer else None

    def close(self) -> None:
        self.is_open = False
        for end in self.ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


class Proxy:
    """Listens on loopback and forwards to the server of the test database."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        params = connections["default"].get_connection_params()
        self._host, self._server_port = params.get("host") or "localhost", int(params.get("port") or 5432)
        self.flows: list[Flow] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def database(self) -> dict[str, Any]:
        """The test database through the proxy, as Django's settings want it."""
        return {
            **database_of_this_run(),
            "HOST": "127.0.0.1",
            "PORT": str(self.port),
            "OPTIONS": {"sslmode": "disable"},
        }

    def hold_answers(self, role: str) -> list[Flow]:
        """Between two statements of theirs, begin to keep back what the server says on the connections for ``role``."""
        wait_until(lambda: self._find(role) and all(flow.is_quiet for flow in self._find(role)), f"{role} is idle")
        held = self._find(role)
        for flow in held:
            flow.passes.clear()
        return held

    def _find(self, role: str) -> list[Flow]:
        free = [flow for flow in self.flows if flow.is_open and flow.passes.is_set()]
        return [flow for flow in free if f"pgbroker {role}".encode() in flow.begin]

    def refuse(self) -> None:
        """From now on nobody gets in any more."""
        # A thread in accept() keeps the socket open until it is shut down.
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def close(self) -> None:
        self.refuse()
        for flow in self.flows:
            flow.passes.set()
            flow.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                flow = Flow(client, self._reach())
                self.flows.append(flow)
                for pump in (self._ask, self._answer):
                    threading.Thread(target=pump, args=(flow,), daemon=True).start()

    def _reach(self) -> socket.socket:
        if self._host.startswith("/"):
            server = socket.socket(socket.AF_UNIX)
            server.connect(f"{self._host}/.s.PGSQL.{self._server_port}")
            return server
        return socket.create_connection((self._host, self._server_port))

    def _ask(self, flow: Flow) -> None:
        client, server = flow.ends
        with contextlib.suppress(OSError):
            while data := client.recv(_SIZE):
                flow.begin = flow.begin or data
                if data != _FLUSH:
                    flow.note(is_answer=False)
                server.sendall(data)
        flow.close()

    def _answer(self, flow: Flow) -> None:
        client, server = flow.ends
        with contextlib.suppress(OSError):
            while data := server.recv(_SIZE):
                flow.passes.wait()
                client.sendall(data)
                flow.note(is_answer=True)
        flow.close()


@contextlib.contextmanager
def proxied() -> Iterator[Proxy]:
    """A proxy for the block."""
    proxy = Proxy()
    try:
        yield proxy
    finally:
        proxy.close()
