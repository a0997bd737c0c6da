"""How stored values look on a screen. Every stored value is escaped, and none ever becomes a link target."""

import json
from datetime import UTC, datetime
from typing import Any

from django.contrib.admin import AdminSite, display
from django.db.models import Model
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from django_pgbroker.domain.durations import describe_age, describe_seconds, describe_wait

#: What stands where there is no value.
NOTHING = "\N{EN DASH}"


def is_key(text: str) -> bool:
    """Whether a text from an address or a form is a number that a row can have."""
    return text.isascii() and text.isdigit() and len(text) < 19


def badge(label: str) -> SafeString:
    """A state, outcome or presence as a coloured word.

    Args:
        label: the ``label`` of one of the project's enums, which the stylesheet knows; never a stored text.
    """
    return format_html('<span class="pgb-badge pgb-{}">{}</span>', label.replace("_", "-"), label.replace("_", " "))


def breakable(name: str) -> SafeString:
    """A dotted name that breaks behind its dots where it does not fit, before it breaks inside a word."""
    *heads, tail = name.split(".")
    pieces = [f"{head}." for head in heads] + [tail]
    return format_html_join(SafeString("<wbr>"), "{}", ((piece,) for piece in pieces))


@display(description="job type")
def job_type(row: Any) -> SafeString:
    """The column with the job type of a job or an execution."""
    return breakable(row.job_type.name)


def moment(when: datetime | None, read_at: datetime) -> SafeString | str:
    """A point in time as its distance from ``read_at``, with the exact time as a tooltip.

    Args:
        when: the time to show.
        read_at: the database's clock when the row was read.
    """
    if when is None:
        return NOTHING
    seconds = (read_at - when).total_seconds()
    words = describe_age(seconds) if seconds >= 0 else describe_wait(-seconds)
    exact = _write_exact(when)
    return format_html('<time datetime="{}Z" title="{} UTC">{}</time>', exact.replace(" ", "T"), exact, words)


def exact_moment(when: datetime | None, read_at: datetime) -> SafeString | str:
    """A point in time for a detail page: exact, with its distance from ``read_at``."""
    if when is None:
        return NOTHING
    return format_html('{} UTC <span class="pgb-quiet">{}</span>', _write_exact(when), moment(when, read_at))


def duration_between(start: datetime | None, end: datetime | None) -> str:
    """The time from ``start`` to ``end`` in words."""
    return NOTHING if start is None or end is None else describe_seconds((end - start).total_seconds())


def duration(microseconds: int | None) -> str:
    """A measured run time in words."""
    return NOTHING if microseconds is None else describe_seconds(microseconds / 1_000_000)


def pretty_json(value: Any) -> str:
    """Stored JSON, indented, as plain text that the template escapes."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def link(site: AdminSite, model: type[Model], object_id: object, text: object) -> SafeString | str:
    """A link to the detail page of one object on ``site``; plain text where that screen is not registered."""
    return _link(site, f"{model._meta.app_label}_{model._meta.model_name}_change", text, object_id)


def list_link(site: AdminSite, model: type[Model], text: object, **filters: object) -> SafeString | str:
    """A link to a list on ``site``, filtered; plain text where that screen is not registered."""
    return _link(site, f"{model._meta.app_label}_{model._meta.model_name}_changelist", text, **filters)


def _link(site: AdminSite, name: str, text: object, *args: object, **query: object) -> SafeString | str:
    try:
        url = reverse(f"admin:{name}", args=args, current_app=site.name)
    except NoReverseMatch:
        return str(text)
    if query:
        url += "?" + "&".join(f"{key}={int(str(value))}" for key, value in query.items())
    return format_html('<a href="{}">{}</a>', url, text)


def _write_exact(when: datetime) -> str:
    return f"{when.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
