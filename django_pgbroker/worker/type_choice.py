"""Which job types a worker takes, by the patterns that it was given. Asked at its start."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

from django_pgbroker.domain.errors import InvalidOption
from django_pgbroker.domain.names import suggest
from django_pgbroker.registry import JobType, registry


def parse_patterns(text: str) -> tuple[str, ...]:
    """Read ``mail.*,shop.charge``: names of job types, or patterns with ``*``, separated by commas.

    Raises:
        InvalidOption: there is none.
    """
    patterns = tuple(filter(None, (part.strip() for part in text.split(","))))
    if not patterns:
        raise InvalidOption("no job type is named; write names or patterns, as in 'mail.*,shop.charge'")
    return patterns


def choose_names(types: Sequence[str], exclude_types: Sequence[str]) -> list[str]:
    """The names and aliases of the job types that a worker takes.

    Args:
        types: patterns as the setting ``ROUTES`` has them; none means all job types. A pattern that fits one name of a
            job type fits its aliases too.
        exclude_types: patterns of those that are left out, whatever ``types`` says.

    Raises:
        InvalidOption: a pattern fits no job type, or nothing is left.
    """
    known = registry.all()
    for pattern in (*types, *exclude_types):
        if not any(_fits(job_type, pattern) for job_type in known):
            raise InvalidOption(f"no job type fits {pattern!r}. {suggest(pattern, registry.names())}".rstrip())
    chosen = {
        job_type for job_type in known if (not types or _fits(job_type, *types)) and not _fits(job_type, *exclude_types)
    }
    if exclude_types and not chosen:
        raise InvalidOption(f"no job type is left: {', '.join(exclude_types)} exclude all that would be taken")
    return [name for name in registry.names() if registry.get(name) in chosen]


def _fits(job_type: JobType, *patterns: str) -> bool:
    names = (job_type.name, *job_type.aliases)
    return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)
