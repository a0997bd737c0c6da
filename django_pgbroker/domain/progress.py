"""How far a job is, as its handler tells it. For ``ctx.progress``, the worker and the admin."""

import math
from typing import NamedTuple

from django_pgbroker.domain.errors import InvalidOption, show_value
from django_pgbroker.domain.payload import sanitise_text

STAGE_LIMIT = 200


class Progress(NamedTuple):
    """``done`` of ``total`` units, and what the job is at; a total of None is unknown."""

    done: float
    total: float | None = None
    stage: str | None = None

    @property
    def percent(self) -> float | None:
        """From 0 to 100; None where the total is unknown."""
        if self.total is None:
            return None
        return 100.0 if self.done >= self.total else min(100.0 * (self.done / self.total), 100.0)


class ProgressReport(NamedTuple):
    """The newest progress of one claim; None where the job only has to be marked as one that leaves rows behind."""

    job_id: int
    lease_token: int
    progress: Progress | None


def make_progress(done: object, total: object = None, stage: object = None) -> Progress:
    """What a handler tells, checked so that it can be stored.

    Args:
        done: a finite number, 0 or more.
        total: None, or a finite number above 0; ``done`` may exceed it.
        stage: None or a text; what PostgreSQL cannot store is escaped, what is too long is cut.

    Raises:
        InvalidOption: a value is none of these; the message names it.
    """
    if stage is not None and not isinstance(stage, str):
        raise InvalidOption(f"progress(stage={show_value(stage)}): give a text or None")
    wanted = None if total is None else _read_number("total", total)
    if wanted == 0:
        raise InvalidOption("progress(total=0): give a number above 0, or None while the total is not known")
    return Progress(_read_number("done", done), wanted, stage and sanitise_text(stage, STAGE_LIMIT))


def _read_number(name: str, value: object) -> float:
    try:
        number = math.nan if isinstance(value, bool | str | bytes) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not (math.isfinite(number) and number >= 0):
        raise InvalidOption(f"progress({name}={show_value(value)}): give a finite number, 0 or more")
    return number
