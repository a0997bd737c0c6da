"""``/livez`` and ``/readyz`` of a worker over HTTP, in threads beside it. For ``pgbroker_worker --health-port``."""

import json
import socket
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any

from django_pgbroker.worker.vitals import Vitals

#: A client that says nothing for so long is cut off.
_CLIENT_SECONDS = 5.0


class HealthServer:
    """Answers as long as the process lives.

    Args:
        vitals: of the worker.
        host: the address to listen on.
        port: 0 for any that is free.

    Raises:
        OSError: the address cannot be had.
    """

    def __init__(self, vitals: Vitals, host: str, port: int) -> None:
        self._server = _Server((host, port), _make_handler(vitals))
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.2}, name="pgbroker-health", daemon=True
        )

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_address[1])

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._server.server_close()


def require_address(host: str, port: int) -> None:
    """Find out that an address can be had, and let go of it.

    Raises:
        OSError: it cannot.
    """
    _Server((host, port), BaseHTTPRequestHandler).server_close()


class _Server(ThreadingHTTPServer):
    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, handler)

    def server_bind(self) -> None:
        """Without the look-up of a name, which may take seconds."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]

    daemon_threads = True
    # the default of 5 makes a probe that comes in a crowd wait for a second and more
    request_queue_size = 64
    # two workers on one port would answer for each other
    allow_reuse_port = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in the middle is no news."""


def _make_handler(vitals: Vitals) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _CLIENT_SECONDS
        server_version = "pgbroker"
        sys_version = ""

        def do_GET(self) -> None:
            match self.path.partition("?")[0]:
                case "/livez":
                    self._judge(vitals.find_deadly())
                case "/readyz":
                    self._judge(vitals.find_unready())
                case _:
                    self._answer(HTTPStatus.NOT_FOUND, {"status": "not found", "paths": ["/livez", "/readyz"]})

        do_HEAD = do_GET  # noqa: N815 - the names that http.server looks for

        def _judge(self, reason: str | None) -> None:
            if reason is None:
                self._answer(HTTPStatus.OK, {"status": "ok", **vitals.describe()})
            else:
                self._answer(
                    HTTPStatus.SERVICE_UNAVAILABLE, {"status": "failing", "reason": reason, **vitals.describe()}
                )

        def _answer(self, status: HTTPStatus, body: dict[str, Any]) -> None:
            data = json.dumps(body).encode() + b"\n"
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
            """As JSON too: of other methods, long request lines, and what is no HTTP."""
            self.close_connection = True
            phrase = HTTPStatus(code).phrase.lower()
            self._answer(HTTPStatus(code), {"status": phrase})

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name in http.server
            """Probes come every few seconds: no line for each."""

    return Handler
