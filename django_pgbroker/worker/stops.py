"""Which claims of a worker must end before their handler does, and why. Asked by handlers, so it costs one look-up."""

from django_pgbroker.domain.stops import Stop


class Stops:
    """Filled by the overseer and the lease keeper; safe to use from any thread. The first reason stays."""

    def __init__(self) -> None:
        self._stops: dict[int, Stop] = {}

    def add(self, lease_token: int, stop: Stop) -> bool:
        """Have the handler of this claim end; False when it is asked to already."""
        return self._stops.setdefault(lease_token, stop) is stop

    def find(self, lease_token: int) -> Stop | None:
        """Why the handler of this claim must end, if it must."""
        return self._stops.get(lease_token)

    def forget(self, lease_token: int) -> None:
        """The claim has a verdict."""
        self._stops.pop(lease_token, None)
