"""The demo's web server: its port, and whether it answers there."""

import os
import re
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable

from django.conf import settings

from example_project.documents.children import Child, ChildEnded, Children

HOST = "127.0.0.1"
START_SECONDS = 30
#: As a port to listen on: any free one, chosen by the system.
ANY = 0


class PortTaken(Exception):
    """Somebody else listens on the port that was asked for."""


def choose_port(preferred: int) -> int:
    """Return ``preferred``, or ANY when that one is taken and the environment does not insist on it.

    Raises:
        PortTaken: PORT names a port that is in use.
    """
    if is_free(preferred):
        return preferred
    if os.environ.get("PORT"):
        raise PortTaken(f"port {preferred} is in use. Next: set PORT to a free one, or unset it to have one chosen.")
    return ANY


def is_free(port: int) -> bool:
    """Whether a server could listen on ``port`` of this machine."""
    with socket.socket() as listener:
        # As the web server does: a port whose last connections have just been closed is free.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
        except OSError:
            return False
    return True


def answers(address: str) -> bool:
    """Whether a web page is served at ``address``."""
    try:
        with urllib.request.urlopen(address, timeout=5) as response:  # noqa: S310 (our own http address)
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def start_web_server(children: Children, pause: Callable[[], None]) -> str:
    """Start the web server and return the address of the admin once it answers there.

    Args:
        children: where the server belongs.
        pause: called between two looks; raises ChildEnded when a child has ended.

    Raises:
        ChildEnded: the server does not start.
        PortTaken: PORT names a port that is in use.
    """
    port = choose_port(settings.PORT)
    server = run_server(children, port)
    deadline = time.monotonic() + START_SECONDS
    while True:
        address = served_at(server.tail())
        if address and answers(f"{address}admin/"):
            return f"{address}admin/"
        if time.monotonic() > deadline:
            raise ChildEnded(f"The web server does not answer on port {port}. It wrote last:\n{server.tail()}")
        try:
            pause()
        except ChildEnded:
            # Somebody may have taken the port between our look and the server's start.
            if not server.has_ended() or choose_port(port) == port:
                raise
            children.forget(server)
            port = ANY
            server = run_server(children, port)


def run_server(children: Children, port: int) -> Child:
    """Start the server; it says itself where it listens."""
    return children.start("web server", "runserver", "--noreload", f"{HOST}:{port}")


def served_at(output: str) -> str | None:
    """Return the address that the server has printed once it listened, if it has."""
    found = re.search(rf"server at (http://{re.escape(HOST)}:\d+/)", output)
    return found and found.group(1)
