"""How a supervisor tells its worker processes to stop: a pipe each, whose end of file says that it is gone itself.

Not signals: a service manager that sends SIGTERM to all processes at once would be taken for a second, urgent one.
"""

import os
import threading

from django_pgbroker.runtime.stopping import Stopping

DRAIN = b"d"
ABORT = b"a"


def follow_leash(reader: int, stopping: Stopping) -> None:
    """Obey what comes by the pipe, in a thread that lasts as long as the process.

    Args:
        reader: file descriptor of the reading end.
        stopping: of the worker; a supervisor that is gone lets it drain.

    Raises:
        OSError: the descriptor is none.
    """
    os.set_inheritable(reader, False)
    threading.Thread(target=_obey, args=(reader, stopping), name="pgbroker-leash", daemon=True).start()


def _obey(reader: int, stopping: Stopping) -> None:
    while order := os.read(reader, 1):
        if order == ABORT:
            stopping.request_abort()
        else:
            stopping.request_drain()
    stopping.request_drain()
