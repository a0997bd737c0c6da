"""Run a ``manage.py`` command that ends with the process that started it, also a killed one. Started by children.py.

The parent holds the other end of standard input and never writes to it: end of file means that it is gone.
"""

import os
import signal
import sys
import threading
import time

from django.core.management import execute_from_command_line

#: For finishing what runs, after which the process ends whatever it does.
DRAIN_SECONDS = 10


def end_with_parent() -> None:
    """Wait for the end of standard input, then ask this process to stop, and at last make it."""
    # Not sys.stdin: its lock, held by a daemon thread, is a fatal error when the interpreter ends.
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(DRAIN_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=end_with_parent, daemon=True).start()
    execute_from_command_line(["manage.py", *sys.argv[1:]])
