"""What a bench refuses or gives up. Told by pgbroker_bench as one line."""

from django_pgbroker.domain.errors import PgbrokerError


class BenchError(PgbrokerError):
    """The measurement cannot begin here, or what it found is worth nothing."""
