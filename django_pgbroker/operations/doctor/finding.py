"""What an examination says: a level, the figures, a remedy. Used by every examination and by ``pgbroker_doctor``."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from django_pgbroker.store.gateway import Gateway


class Level(StrEnum):
    """How bad it is; ``UNSEEN`` could not be examined, and is neither good nor bad."""

    OK = "ok"
    UNSEEN = "unseen"
    WARNING = "warning"
    ALARM = "alarm"


#: From harmless to bad.
SEVERITY = (Level.OK, Level.UNSEEN, Level.WARNING, Level.ALARM)


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one examination.

    Args:
        level: how bad it is.
        summary: one sentence with the figures that matter.
        remedy: what to do; empty where nothing is to be done.
        figures: the same and more, for scripts; plain values, lists and dicts.
    """

    level: Level
    summary: str
    remedy: str = ""
    figures: Mapping[str, Any] = field(default_factory=dict)


class Subject(NamedTuple):
    """What is examined: the alias, and a connection of the broker's own to it."""

    database: str
    gateway: Gateway


def judge(value: float, warning_from: float, alarm_from: float) -> Level:
    """The level of a figure that is the worse the larger it is."""
    if value >= alarm_from:
        return Level.ALARM
    return Level.WARNING if value >= warning_from else Level.OK
