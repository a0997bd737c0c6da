"""What a long-running command asks before it says that it runs. Used by worker, reaper and scheduler."""

from django.core.management.base import CommandError
from django.db import Error, InterfaceError, OperationalError, connections

from django_pgbroker.domain.errors import PgbrokerError
from django_pgbroker.operations.installation import require_installed
from django_pgbroker.operations.migration_state import read_migration_state
from django_pgbroker.worker.budget import Budget, make_budget
from django_pgbroker.worker.options import WorkerOptions


def check_database(alias: str) -> None:
    """Refuse to start on a database that can never work; one that is away is waited for later, as in an outage.

    Raises:
        CommandError: there is no such alias, it is not PostgreSQL, refuses this role, or lacks migrations of this code.
    """
    try:
        require_installed(alias)
        _require_migrations(alias)
    except PgbrokerError as error:
        raise CommandError(str(error)) from error
    except (OperationalError, InterfaceError):
        return
    except Error as error:
        raise CommandError(f"the database {alias!r} cannot be used: {error}".strip()) from error
    finally:
        _disconnect(alias)


def check_connections(options: WorkerOptions, processes: int, *, with_maintenance: bool) -> Budget:
    """Refuse to start more than the server could ever serve; one that is away is not asked.

    Args:
        options: of each worker process.
        processes: how many are to run.
        with_maintenance: whether the first of them run the duties.

    Raises:
        ConfigurationError: they need more connections than some limit allows.
    """
    try:
        budget = make_budget(options, processes, with_maintenance=with_maintenance)
    except Error:
        budget = make_budget(options, processes, with_maintenance=with_maintenance, asks_limits=False)
    finally:
        _disconnect(options.database)
    budget.check()
    return budget


def _disconnect(alias: str) -> None:
    """The command makes connections of its own from here on; this one would be kept for nothing."""
    if alias in connections.settings and not connections[alias].in_atomic_block:
        connections[alias].close()


def _require_migrations(alias: str) -> None:
    """Refuse a schema that is older than this code: the process would start, and fail again and again."""
    try:
        state = read_migration_state(alias)
    except Error:
        # a role may run jobs that may not read Django's table of migrations
        return
    if state.missing and state.is_recorded:
        raise CommandError(
            f"the database {alias!r} cannot be used: it lacks {', '.join(state.missing)} of django_pgbroker. "
            f"Run manage.py migrate --database {alias} first, then start the processes of this release"
        )
