"""Restart a worker when the code changes, for development. For ``pgbroker_worker --reload``."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.apps import apps
from django.dispatch import receiver
from django.utils import autoreload

from django_pgbroker.worker.supervisor import Supervisor

#: A worker that is to run new code lets handlers of the old code finish for so long.
DRAIN_SECONDS = 5.0


class ReloadingSupervisor:
    """One worker process under a parent that watches the files which the project consists of.

    The parent has imported what a worker imports, so it knows the files. After a change a fresh interpreter is asked
    whether the project can be loaded; if so the worker drains and this process becomes that fresh interpreter.

    Args:
        command: the command line of this process.
        until_empty: end when the worker has found nothing left.
    """

    def __init__(self, command: Sequence[str], *, until_empty: bool) -> None:
        self._command = list(command)
        self._supervisor = Supervisor(
            1, lambda number, leash: [*self._command, "--process", f"{number}/1:{leash}"], until_empty=until_empty
        )
        self._has_changed = False

    def run(self) -> int:
        """Run until stopped; returns the exit status, or begins anew with fresh code and never returns."""
        # a receiver that answers True keeps the reloader from ending this process
        receiver(autoreload.file_changed, dispatch_uid="pgbroker-reload", weak=False)(self._note_change)
        threading.Thread(
            target=self._watch, args=(threading.main_thread(),), name="pgbroker-reload", daemon=True
        ).start()
        status = self._supervisor.run()
        if self._has_changed and not self._supervisor.stopping.abort.is_set():
            sys.stdout.flush()
            sys.stderr.flush()
            os.execv(self._command[0], self._command)  # noqa: S606 - the command line of this process
        return status

    def _watch(self, main_thread: threading.Thread) -> None:
        reloader = autoreload.get_reloader()
        for config in apps.get_app_configs():
            path = Path(config.path)
            if "site-packages" not in path.parts:
                # modules that no one has imported yet count too
                reloader.watch_dir(path, "**/*.py")
        reloader.run(main_thread)

    def _note_change(self, file_path: Path, **_: Any) -> bool:
        if self._supervisor.stopping.drain.is_set():
            return True
        _say(f"{file_path} has changed.")
        if not self._can_load():
            _say("The code cannot be loaded, see above: the worker goes on with the old one, until the next change.")
            return True
        self._has_changed = True
        os.kill(os.getpid(), signal.SIGTERM)
        return True

    def _can_load(self) -> bool:
        probe = [*self._command, "--probe"]
        return subprocess.run(probe, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False).returncode == 0  # noqa: S603


def _say(text: str) -> None:
    sys.stderr.write(f"pgbroker reload: {text}\n")
    sys.stderr.flush()
