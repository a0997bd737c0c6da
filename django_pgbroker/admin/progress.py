"""How far a job is and what it remembers, for the list of live jobs and for the pages of all jobs."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.models import TextField
from django.db.models.functions import Cast, Left
from django.utils.html import format_html
from django.utils.safestring import SafeString

from django_pgbroker.admin.display import NOTHING, exact_moment, moment
from django_pgbroker.admin.section import Section, Table
from django_pgbroker.domain.progress import Progress
from django_pgbroker.models import JobStep
from django_pgbroker.models.clock import Clock

#: Steps listed on a job's page.
SHOWN_STEPS = 50

#: Characters of a remembered value that a page shows.
_SHOWN_CHARACTERS = 120


def progress_cell(told: Progress) -> SafeString:
    """One job's progress in a list: a bar with its percentage, or what is done, and the stage."""
    amount = _write_amount(told.done) if told.percent is None else _draw_bar(told.percent)
    stage = told.stage or ""
    return format_html('{} <span class="pgb-quiet" title="{}">{}</span>', amount, stage, _shorten(stage, 40))


def progress_section(told: Progress, updated_at: datetime | None, read_at: datetime) -> Section:
    """The progress of one job on its page.

    Args:
        told: by its handler.
        updated_at: when that was written; None for a job that has finished.
        read_at: the database's clock when the row was read.
    """
    done = _write_amount(told.done)
    facts: list[tuple[str, Any]] = [
        ("Done", done if told.total is None else f"{done} of {_write_amount(told.total)}"),
        ("Stage", told.stage or NOTHING),
    ]
    if told.percent is not None:
        facts.insert(0, ("Progress", _draw_bar(told.percent)))
    if updated_at is not None:
        facts.append(("Told", exact_moment(updated_at, read_at)))
    return Section("Progress", facts)


def read_archived(stored: Mapping[str, Any]) -> Progress:
    """The last progress of a finished job, as its row in the archive holds it."""
    total = stored.get("total")
    return Progress(float(stored["done"]), None if total is None else float(total), stored.get("stage"))


def memory_sections(job_id: int) -> list[Section]:
    """What another attempt need not do again: the newest steps, and the cursor."""
    rows = JobStep.objects.filter(job_id=job_id).annotate(
        start=Left(Cast("result", TextField()), _SHOWN_CHARACTERS + 1), read_at=Clock()
    )
    steps = list(rows.exclude(name="").defer("result").order_by("-finished_at", "name")[: SHOWN_STEPS + 1])
    cursor = rows.filter(name="").defer("result").first()
    sections = []
    if steps:
        table = Table(
            ("Step", "Finished", "Result"),
            [
                (step.name, moment(step.finished_at, step.read_at), _write_value(step.start))
                for step in steps[:SHOWN_STEPS]
            ],
        )
        remark = f"The newest {SHOWN_STEPS}." if len(steps) > SHOWN_STEPS else ""
        sections.append(Section("Steps that are done", table=table, remark=remark))
    if cursor:
        facts = [("Value", _write_value(cursor.start)), ("Saved", exact_moment(cursor.finished_at, cursor.read_at))]
        sections.append(Section("Cursor", facts))
    return sections


def _draw_bar(percent: float) -> SafeString:
    """Rounded down: only what is done is at 100."""
    return format_html(
        '<span class="pgb-progress"><progress max="100" value="{}" aria-hidden="true"></progress> {} %</span>',
        f"{percent:.1f}",
        int(percent),
    )


def _write_amount(number: float) -> str:
    return f"{int(number):,}" if number.is_integer() and number < 1e15 else f"{number:,.6g}"


def _write_value(start: str) -> str:
    """The start of stored JSON in one line; a step without a result remembers ``null``."""
    return NOTHING if start == "null" else _shorten(start, _SHOWN_CHARACTERS)


def _shorten(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]}…"
