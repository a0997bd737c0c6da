"""Command line of the embedded server: `stop` and `remove` for people, `keep` for the keeper process."""

from __future__ import annotations

import sys
from pathlib import Path

from example_project.embedded.place import CLONE, EmbeddedServerError, Place, place_of
from example_project.embedded.users import remove, stop, stop_after_the_last_user


def main(arguments: list[str]) -> int:
    """Do what ``arguments`` say; return 0, or 1 after saying what went wrong."""
    try:
        if arguments == ["stop"]:
            say("stopped" if stop(place_of(CLONE)) else "does not run")
        elif arguments == ["remove"]:
            say("stopped, and its data deleted" if remove(place_of(CLONE)) else "has no data")
        elif len(arguments) == 3 and arguments[0] == "keep":
            stop_after_the_last_user(Place(Path(arguments[1])), int(arguments[2]))
        else:
            print("usage: python3 -m example_project.embedded stop | remove", file=sys.stderr)
            return 2
    except (EmbeddedServerError, OSError) as error:
        print(f"embedded PostgreSQL: {error}", file=sys.stderr)
        return 1
    return 0


def say(what: str) -> None:
    """Print what has become of the server, for `make stop` and `make clean`."""
    print(f"The PostgreSQL of this clone: {what}.", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
