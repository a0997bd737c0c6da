"""What a confirmation page asks for: a reason, and the values that a verb needs. Named by the acts of the screens."""

from datetime import datetime
from typing import Any

from django import forms
from django.utils import timezone

from django_pgbroker.conf import LONGEST_AGEING_SECONDS
from django_pgbroker.domain.options import LONGEST_TEXT
from django_pgbroker.domain.priorities import HIGHEST_PRIORITY, LOWEST_PRIORITY
from django_pgbroker.domain.verbs import Verb
from django_pgbroker.models import Queue

#: A longer list of queues helps nobody.
LONGEST_LIST = 1_000


class MomentField(forms.DateTimeField):
    """A time in the zone that the admin shows, which its help names."""

    def __init__(self, **options: Any) -> None:
        widget = forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")
        super().__init__(required=False, widget=widget, **options)

    def get_bound_field(self, form: forms.BaseForm, field_name: str) -> forms.BoundField:
        """With the zone of this request in the help."""
        self.help_text = f"In the time zone {timezone.get_current_timezone_name()}."
        return super().get_bound_field(form, field_name)


class ReasonForm(forms.Form):
    """A reason; the forms below add values.

    Args:
        verb: says whether a reason must be given.
        subject: the queue or the worker, where it is one.
    """

    field_order: list[str] | None = None

    reason = forms.CharField(
        max_length=LONGEST_TEXT,
        help_text="Kept in the audit log.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )

    def __init__(self, *args: Any, verb: Verb, subject: Any = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["reason"].required = verb.needs_reason
        self.order_fields([name for name in self.fields if name != "reason"])
        self.fill(subject)

    def fill(self, subject: Any) -> None:
        """Set initial values and choices by what it is done to."""

    def values(self) -> dict[str, Any]:
        """What was given beside the reason, as the arguments of the operation."""
        return {name: value for name, value in self.cleaned_data.items() if name != "reason"}


def check_ahead(moment: datetime | None) -> datetime | None:
    """A time that is to come.

    Raises:
        ValidationError: it has passed.
    """
    if moment is not None and moment <= timezone.now():
        raise forms.ValidationError("This time has passed.")
    return moment


class PostponeForm(ReasonForm):
    """By how long, or until when."""

    delay = forms.FloatField(required=False, min_value=0, label="Minutes from now", widget=forms.NumberInput)
    run_at = MomentField(label="Or not before")

    def clean_run_at(self) -> datetime | None:
        """A time ahead."""
        return check_ahead(self.cleaned_data["run_at"])

    def clean(self) -> dict[str, Any]:
        """One of both, the delay in seconds."""
        given: dict[str, Any] = super().clean() or {}
        delay, run_at = given.get("delay"), given.get("run_at")
        if not self.errors and (delay is None) is (run_at is None):
            raise forms.ValidationError("Give either a number of minutes or a time.")
        return given | {"delay": None if delay is None else delay * 60}


class PriorityForm(ReasonForm):
    """The new priority."""

    priority = forms.IntegerField(
        min_value=LOWEST_PRIORITY,
        max_value=HIGHEST_PRIORITY,
        help_text=f"{LOWEST_PRIORITY} to {HIGHEST_PRIORITY}; higher runs first.",
    )


class MoveForm(ReasonForm):
    """The other queue."""

    queue = forms.ChoiceField()

    def fill(self, subject: Any) -> None:
        """Offer the queues there are."""
        offer_names(self, "queue", list_queues())


class RedriveForm(ReasonForm):
    """With which attempts, and how fast."""

    keep_attempts = forms.BooleanField(
        required=False,
        label="One more attempt only",
        help_text="Otherwise each job gets all its attempts anew.",
    )
    per_second = forms.FloatField(
        required=False,
        min_value=0.01,
        label="Jobs a second, at most",
        help_text="Empty: as fast as it goes. With a pace a job of the broker itself does it.",
    )


class PlainRedriveForm(ReasonForm):
    """With which attempts: for jobs that are named, which no pace is for."""

    keep_attempts = RedriveForm.base_fields["keep_attempts"]


class PauseForm(ReasonForm):
    """Until when."""

    until = MomentField(label="Resume by itself at")

    def clean_until(self) -> datetime | None:
        """A time ahead."""
        return check_ahead(self.cleaned_data["until"])


class AgeingForm(ReasonForm):
    """The seconds of waiting that weigh as much as one step of priority."""

    ageing_seconds = forms.IntegerField(
        min_value=0,
        max_value=LONGEST_AGEING_SECONDS,
        label="Ageing in seconds",
        help_text="Waiting this long counts as much as one step of priority. 0 is strict order of time.",
    )

    def fill(self, subject: Any) -> None:
        """Begin with what it is."""
        self.fields["ageing_seconds"].initial = subject.ageing_seconds


class ResizeForm(ReasonForm):
    """The new number of slots."""

    concurrency = forms.IntegerField(min_value=1, max_value=10_000, label="Slots", help_text="Jobs at the same time.")

    def fill(self, subject: Any) -> None:
        """Begin with what it is."""
        self.fields["concurrency"].initial = subject.ordered_concurrency or subject.concurrency


class ServedQueueForm(ReasonForm):
    """One of the queues that a worker serves and that are not paused on it."""

    queue = forms.ChoiceField()

    def fill(self, subject: Any) -> None:
        """Offer them."""
        offer_names(self, "queue", [name for name in subject.queues if name not in subject.paused_queues])


class LeftQueueForm(ReasonForm):
    """One of the queues that are paused on a worker."""

    queue = forms.ChoiceField()

    def fill(self, subject: Any) -> None:
        """Offer them."""
        offer_names(self, "queue", list(subject.paused_queues))


def list_queues() -> list[str]:
    """The names of the queues there are."""
    return list(Queue.objects.order_by("name").values_list("name", flat=True)[:LONGEST_LIST])


def offer_names(form: forms.Form, name: str, names: list[str], empty: str = "") -> None:
    """Let one field choose among names.

    Args:
        form: with the field.
        name: of the field.
        names: to choose from.
        empty: what no choice means, where none need be made.
    """
    field = form.fields[name]
    assert isinstance(field, forms.ChoiceField)
    field.choices = [*([("", empty)] if empty else []), *((each, each) for each in names)]
