"""What ``ps`` shows of a worker process, where the package ``setproctitle`` is installed. For ``pgbroker_worker``."""

from collections.abc import Callable
from importlib import import_module


def _find_setter() -> Callable[[str], object]:
    try:
        setter: Callable[[str], object] = import_module("setproctitle").setproctitle
    except ImportError:
        return lambda _title: None
    return setter


#: Gives this process a title; does nothing without the package.
set_title = _find_setter()
