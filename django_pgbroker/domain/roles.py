"""Who may do what by default: three roles, each of which includes the one before."""

from enum import IntEnum


class Role(IntEnum):
    """A group of people; ``pgbroker_roles`` makes a Django group of each."""

    #: Sees every screen, changes nothing.
    VIEWER = 1
    #: On call: cancels, retries, pauses.
    OPERATOR = 2
    #: Redrives and purges, edits what jobs carry, enqueues by hand.
    ADMIN = 3

    @property
    def group_name(self) -> str:
        """The name of its Django group."""
        return f"pgbroker {self.name.lower()}"
