"""A verb as the screens offer it: which operation does it, what is asked for, how it is worded. See ``job_acts``."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django_pgbroker.admin.act_forms import ReasonForm
from django_pgbroker.domain.states import JobState
from django_pgbroker.domain.verbs import Verb


@dataclass(frozen=True)
class Act:
    """One verb on one screen.

    Args:
        verb: what it is.
        carry_out: the operation; called with what it is done to, the values of the form, and who asks.
        question: the heading of the confirmation page, with ``{}`` for what it is done to.
        form: what is asked for.
        bulk_form: what is asked for where all that match are meant, if that is more.
        condition: whether an object can be taken by it; by default the verb's states decide.
        consequence: one sentence on what happens then.
        is_destructive: whether the button looks so, and a confirmation is always asked for.
        is_mild: of a destructive one, whether nothing is lost by it: it warns, and does not alarm.
        is_bulk: whether it is offered for selections and for all that match.
    """

    verb: Verb
    carry_out: Callable[..., Any]
    question: str
    form: type[ReasonForm] = ReasonForm
    bulk_form: type[ReasonForm] | None = None
    condition: Callable[[Any], bool] | None = None
    consequence: str = ""
    is_destructive: bool = False
    is_mild: bool = False
    is_bulk: bool = False

    @property
    def name(self) -> str:
        """What its action and its addresses are called."""
        return self.verb.name.partition(".")[2]

    @property
    def tone(self) -> str:
        """The class of its buttons that says what it does."""
        if not self.is_destructive:
            return ""
        return "pgb-caution" if self.is_mild else "pgb-danger"

    @property
    def always_asks(self) -> bool:
        """Whether even one object needs a confirmation page."""
        return self.is_destructive or self.verb.needs_reason or self.form is not ReasonForm

    def applies_to(self, row: Any) -> bool:
        """Whether this row can be taken by it now."""
        return self.verb.applies_to(JobState(row.state)) if self.condition is None else self.condition(row)
