"""The table of events in the page on logging is what the code emits, with its levels."""

import ast
import logging
import re
from collections import defaultdict
from pathlib import Path

import pytest

from django_pgbroker import telemetry

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs/how-to/logging.md").read_text()
ROWS = dict(re.findall(r"^\| `([\w.]+)` \| ([^|]+) \|", PAGE, re.MULTILINE))
LEVELS = {"debug", "info", "warning", "error"}


def emitted() -> tuple[dict[str, set[str]], list[re.Pattern[str]]]:
    """Every event that the code names with the levels that it names directly, and the patterns of those it composes."""
    events: dict[str, set[str]] = defaultdict(set)
    patterns = []
    for path in (ROOT / "django_pgbroker").rglob("*.py"):
        tree = ast.parse(path.read_text())
        if path.name == "telemetry.py" or "telemetry" not in path.read_text():
            continue
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            parts = [call.func, *call.args[:2]]
            level = {part.attr for part in parts if _is_telemetry(part)} & LEVELS
            for part in parts[1:]:
                if isinstance(part, ast.Constant) and re.fullmatch(r"[a-z_]+\.[a-z_]+", str(part.value)):
                    events[str(part.value)] |= level
                elif isinstance(part, ast.JoinedStr) and level and part is parts[1]:
                    pieces = [re.escape(p.value) if isinstance(p, ast.Constant) else r"\w+" for p in part.values]
                    patterns.append(re.compile("".join(pieces)))
    return events, patterns


def _is_telemetry(part: ast.expr) -> bool:
    return isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == "telemetry"


def test_every_event_of_the_code_is_in_the_table_with_its_level():
    events, _ = emitted()

    assert len(events) > 20
    for event, levels in events.items():
        assert event in ROWS, f"add {event} to docs/how-to/logging.md"
        assert levels <= set(re.findall(r"\w+", ROWS[event])), event


def test_every_event_of_the_table_is_in_the_code():
    events, patterns = emitted()

    assert list(ROWS) == sorted(ROWS)
    for event in ROWS:
        assert event in events or any(pattern.fullmatch(event) for pattern in patterns), event


def test_a_record_has_its_event_and_fields_as_the_formatter_of_the_page_writes_them(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scope: dict[str, type[logging.Formatter]] = {}
    exec(re.findall(r"```python\n(import json.*?)```", PAGE, re.DOTALL)[0], scope)

    with caplog.at_level("INFO", "django_pgbroker"):
        telemetry.info("worker.started", "ready", worker=7)

    line = scope["JsonFormatter"]().format(caplog.records[-1])
    assert '"event": "worker.started", "worker": 7' in line
    assert '"message": "worker.started: ready (worker=7)"' in line
