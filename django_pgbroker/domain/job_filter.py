"""Which jobs a bulk verb is for. Made by callers, commands and screens; travels as JSON to the broker's own jobs."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Self

from django_pgbroker.domain.errors import InvalidOption, show_value
from django_pgbroker.domain.names import check_job_type_name, check_queue_name, check_tenant_name, suggest
from django_pgbroker.domain.options import read_text, read_time
from django_pgbroker.domain.states import JobState

_TIMES = ("created_after", "created_before", "finished_after", "finished_before")


@dataclass(frozen=True)
class JobFilter:
    """All that is given must hold; nothing given means every job that the verb applies to.

    Args:
        states: words, as in ``("dead",)``; by default all that the verb applies to.
        queue, job_type, tenant: exact names.
        tried: True for those that have had an attempt, False for those that have not.
        error_class: name of the exception's class, with its module or without.
        error: a text that the error's message contains, in whatever case; up to 200 characters.
        created_after, created_before: bounds on when the job was enqueued; aware.
        finished_after, finished_before: bounds on when it ended; aware, for finished jobs only.
    """

    states: tuple[str, ...] = ()
    queue: str | None = None
    job_type: str | None = None
    tenant: str | None = None
    tried: bool | None = None
    error_class: str | None = None
    error: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    finished_after: datetime | None = None
    finished_before: datetime | None = None

    def __post_init__(self) -> None:
        """Check all values.

        Raises:
            InvalidOption: a state that does not exist, a naive time, a text that cannot be shown, no possible job.
            InvalidName: a name that no queue, job type or tenant can have.
        """
        object.__setattr__(self, "states", tuple(self.states))
        self.chosen_states  # noqa: B018 - raises for a word that is no state
        for name, check in (
            ("queue", check_queue_name),
            ("job_type", check_job_type_name),
            ("tenant", check_tenant_name),
        ):
            if getattr(self, name) is not None:
                check(getattr(self, name))
        if not isinstance(self.tried, bool | None):
            raise InvalidOption(f"tried must be True, False or None, not {show_value(self.tried)}")
        for name in ("error_class", "error"):
            read_text(name, getattr(self, name))
        for name in _TIMES:
            if getattr(self, name) is not None:
                read_time(name, getattr(self, name))
        for begin, end in (_TIMES[:2], _TIMES[2:]):
            after, before = getattr(self, begin), getattr(self, end)
            if after is not None and before is not None and after >= before:
                raise InvalidOption(f"{begin} must be earlier than {end}: no job could match")

    @property
    def chosen_states(self) -> frozenset[JobState]:
        """The states as members; empty when none was chosen.

        Raises:
            InvalidOption: a word that is no state.
        """
        return frozenset(read_state(word) for word in self.states)

    @property
    def is_about_the_end(self) -> bool:
        """Whether it asks for what only finished jobs have."""
        return any((self.error_class, self.error, self.finished_after, self.finished_before))

    def as_json(self) -> dict[str, Any]:
        """What is given, as strict JSON; ``from_json`` reads it."""
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        return {
            name: value.isoformat() if isinstance(value, datetime) else list(value) if name == "states" else value
            for name, value in given.items()
            if value not in (None, ())
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """The filter that ``as_json`` wrote.

        Raises:
            InvalidOption: a key or value that no filter has.
        """
        known = [each.name for each in fields(cls)]
        for name in value:
            if name not in known:
                raise InvalidOption(f"{name!r} is no filter. {suggest(name, known)}".rstrip())
        times = {name: datetime.fromisoformat(value[name]) for name in _TIMES if name in value}
        return cls(**{**value, **times})


def read_state(word: str) -> JobState:
    """The state of this word.

    Raises:
        InvalidOption: there is none.
    """
    labels = {state.label: state for state in JobState}
    if word not in labels:
        raise InvalidOption(f"{word!r} is no state. {suggest(str(word), labels) or 'States: ' + ', '.join(labels)}")
    return labels[word]
