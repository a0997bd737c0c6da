"""Which port the demo's web server takes, and whether it answers there."""

import os
import socket
import urllib.error
import urllib.request

HOST = "127.0.0.1"


class PortTaken(Exception):
    """Somebody else listens on the port that was asked for."""


def choose_port(preferred: int) -> int:
    """Return ``preferred``, or any free port when that one is taken and the environment does not insist on it.

    Raises:
        PortTaken: PORT names a port that is in use.
    """
    if is_free(preferred):
        return preferred
    if os.environ.get("PORT"):
        raise PortTaken(f"port {preferred} is in use. Next: set PORT to a free one, or unset it to have one chosen.")
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        port: int = listener.getsockname()[1]
        return port


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
