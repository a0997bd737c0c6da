"""Where a worker process answers probes. The part of ``pgbroker_worker`` that reads ``--health-port``."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from django.core.management.base import CommandError

from django_pgbroker.worker.health import HealthServer, require_address
from django_pgbroker.worker.vitals import Vitals

_LAST_PORT = 65_535


class HealthPlace(NamedTuple):
    """An address; port 0 is any that is free."""

    host: str
    port: int

    def require(self, processes: int) -> None:
        """Find out whether so many processes can have their ports, from this one on.

        Raises:
            CommandError: one of them is taken.
        """
        if self.port + processes - 1 > _LAST_PORT:
            raise CommandError(
                f"--health-port {self.port} with --processes {processes} needs the ports up to "
                f"{self.port + processes - 1}, and the last one is {_LAST_PORT}: take a lower one"
            )
        for port in range(self.port, self.port + processes) if self.port else ():
            with _refusing(self.host, port):
                require_address(self.host, port)


def read_health_place(number: int, *, health_port: int | None, health_host: str, **_options: Any) -> HealthPlace | None:
    """Where the process of this number, from 1, answers probes; None where that is not asked for.

    Raises:
        CommandError: there is no such port.
    """
    if health_port is None:
        return None
    port = health_port + number - 1 if health_port else 0
    if not 0 <= port <= _LAST_PORT:
        raise CommandError(f"--health-port must be from 0 to {_LAST_PORT}, not {port}")
    return HealthPlace(health_host, port)


@contextmanager
def answering(place: HealthPlace | None, vitals: Vitals, show: Callable[[str], None]) -> Iterator[None]:
    """Answer probes within this block, where there is a place for it.

    Args:
        place: where.
        vitals: of the worker.
        show: told the beginning of the URL.

    Raises:
        CommandError: the port is taken.
    """
    if place is None:
        yield
        return
    with _refusing(*place):
        server = HealthServer(vitals, *place)
    server.start()
    host = f"[{place.host}]" if ":" in place.host else place.host
    show(f"http://{host}:{server.port}")
    try:
        yield
    finally:
        server.stop()


@contextmanager
def _refusing(host: str, port: int) -> Iterator[None]:
    try:
        yield
    except (OSError, OverflowError) as error:
        raise CommandError(
            f"--health-port: {host} port {port} cannot be had: {getattr(error, 'strerror', None) or error}. "
            "Choose another one"
        ) from error
