"""A TCP proxy before PostgreSQL that can swallow what one kind of connection is sent, without a FIN or a reset."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any

from django.db import connections

from tests.scenarios.processes import database_of_this_run

_SIZE = 65_536


class Flow:
    """One connection through the proxy; its application name is in the first packet."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.ends = (client, server)
        self.begin = b""
        self.passes = threading.Event()
        self.passes.set()

    def close(self) -> None:
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
        return {**database_of_this_run(), "HOST": "127.0.0.1", "PORT": str(self.port), "OPTIONS": {"sslmode": "disable"}}

    def hold_answers(self, role: str) -> list[Flow]:
        """From now on what the server says on connections for ``role`` is kept back."""
        held = [flow for flow in self.flows if f"pgbroker {role}".encode() in flow.begin]
        for flow in held:
            flow.passes.clear()
        return held

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
                server.sendall(data)
        flow.close()

    def _answer(self, flow: Flow) -> None:
        client, server = flow.ends
        with contextlib.suppress(OSError):
            while data := server.recv(_SIZE):
                flow.passes.wait()
                client.sendall(data)
        flow.close()


@contextlib.contextmanager
def proxied() -> Iterator[Proxy]:
    """A proxy for the block."""
    proxy = Proxy()
    try:
        yield proxy
    finally:
        proxy.close()
