"""What ``ps`` shows of a worker process, where the package ``setproctitle`` is installed. For ``pgbroker_worker``."""

try:
    from setproctitle import setproctitle
except ImportError:
    setproctitle = None


def set_title(title: str) -> None:
    """Give this process a title; without the package nothing happens."""
    if setproctitle:
        setproctitle(title)
