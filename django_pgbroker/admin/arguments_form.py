"""A form for the arguments and options of a job, from the fields of its job type. Used to enqueue, clone and edit."""

import re
from collections.abc import Mapping
from typing import Any

from django import forms

from django_pgbroker.admin.act_forms import LONGEST_LIST, MomentField, ReasonForm, list_queues, offer_names
from django_pgbroker.conf import get_settings
from django_pgbroker.domain.errors import InvalidArguments, InvalidPayload, PgbrokerError
from django_pgbroker.domain.priorities import HIGHEST_PRIORITY, LOWEST_PRIORITY
from django_pgbroker.domain.verbs import Verb
from django_pgbroker.models import Tenant
from django_pgbroker.operations.enqueue_form import (
    OTHER_ARGUMENTS,
    ArgumentField,
    FieldKind,
    read_arguments,
    text_of,
)


class ArgumentsForm(ReasonForm):
    """The arguments of one job, and why.

    Args:
        fields_of_type: from ``list_fields``.
    """

    def __init__(self, *args: Any, fields_of_type: tuple[ArgumentField, ...], verb: Verb, **options: Any) -> None:
        self.fields_of_type = fields_of_type
        super().__init__(*args, verb=verb, **options)
        own = {_key_of(each.name): _make_field(each) for each in fields_of_type}
        self.fields = {**own, **self.fields}

    def groups(self) -> list[tuple[str, list[forms.BoundField]]]:
        """Its fields under two headings."""
        own = [_key_of(each.name) for each in self.fields_of_type]
        groups = [
            ("Arguments", [self[name] for name in own]),
            ("Options", [self[name] for name in self.fields if name not in own]),
        ]
        return [(title, fields) for title, fields in groups if fields]

    def arguments(self) -> dict[str, Any]:
        """What was given, by name.

        Raises:
            InvalidArguments: a text is not what its field takes.
        """
        return read_arguments(self.fields_of_type, {each.name: self._text_of(each) for each in self.fields_of_type})

    def values(self) -> dict[str, Any]:
        """The options that were given."""
        given = {name: value for name, value in super().values().items() if "." not in name}
        return {name: value for name, value in given.items() if value not in {None, ""}}

    def blame(self, error: PgbrokerError) -> None:
        """Show an error of the operation at the field that it is about."""
        if isinstance(error, InvalidArguments):
            named, words = _key_of(error.argument), error.reason
        elif isinstance(error, InvalidPayload):
            named, words = _key_of(_first_name(error.path)), str(error)
        else:
            words = str(error)
            about = [name for name in self.fields if re.search(rf"\b{re.escape(name)}\b", words)]
            named = about[0] if len(about) == 1 else ""
        if named not in self.fields:
            named, words = "", str(error)
        self.add_error(named or None, words[:1].upper() + words[1:])

    def _text_of(self, field: ArgumentField) -> str:
        value = self.cleaned_data[_key_of(field.name)]
        return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


class PlacedForm(ArgumentsForm):
    """With the queue and the priority of a new job."""

    #: Whose queue and priority it gets when nothing is said.
    model_job = "the job type"

    queue = forms.ChoiceField(required=False)
    priority = forms.CharField(required=False)

    def fill(self, subject: Any) -> None:
        """Offer the queues there are, and those that the settings declare."""
        declared = get_settings().queues or {}
        offer_names(self, "queue", sorted({*list_queues(), *declared}), empty=f"that of {self.model_job}")
        self.fields["priority"].help_text = f"-100 to 100, or a named level. Empty: that of {self.model_job}."

    def clean_priority(self) -> int | str:
        """A number where it is one, else the name of a level."""
        return _read_priority(self.cleaned_data["priority"])


class EnqueueForm(PlacedForm):
    """With what a new job may be told."""

    delay = forms.FloatField(required=False, min_value=0, label="Start in seconds", help_text="Empty: at once.")
    run_at = MomentField(label="Or not before")
    tenant = forms.ChoiceField(required=False)

    def fill(self, subject: Any) -> None:
        """Offer the tenants there are, too."""
        super().fill(subject)
        names = Tenant.objects.order_by("name").values_list("name", flat=True)[:LONGEST_LIST]
        offer_names(self, "tenant", list(names), empty="the default one")


class CloneForm(PlacedForm):
    """With what the copy of a job may be told."""

    model_job = "the original"


def _key_of(argument: str) -> str:
    """What the field of an argument is called; options have no point in their name."""
    return f"argument.{argument.replace(' ', '-')}"


def _read_priority(text: str) -> int | str:
    levels = get_settings().priority_levels
    if not text or text in levels:
        return text
    # the length first: no number of thousands of digits is worth reading
    if len(text) < 5 and text.removeprefix("-").isdecimal() and LOWEST_PRIORITY <= int(text) <= HIGHEST_PRIORITY:
        return int(text)
    named = f", or a level: {', '.join(levels)}" if levels else ""
    raise forms.ValidationError(f"Give a number from {LOWEST_PRIORITY} to {HIGHEST_PRIORITY}{named}.")


def _make_field(field: ArgumentField) -> forms.Field:
    label = "Other arguments" if field.name == OTHER_ARGUMENTS else field.name
    hint = field.hint if field.is_required else f"{field.hint} Empty: left to the handler.".strip()
    shared: Mapping[str, Any] = {"label": label, "help_text": hint, "initial": field.initial}
    if field.kind is FieldKind.FLAG and field.is_required:
        return forms.BooleanField(required=False, **{**shared, "initial": field.initial == "true"})
    if field.kind in {FieldKind.FLAG, FieldKind.CHOICE}:
        values = field.choices or (True, False)
        choices = [("", "choose…" if field.is_required else "left to the handler")]
        choices += [(text_of(value), text_of(value)) for value in values]
        return forms.ChoiceField(required=field.is_required, choices=choices, **{**shared, "help_text": field.hint})
    return forms.CharField(required=field.is_required, strip=False, widget=_make_widget(field), **shared)


def _make_widget(field: ArgumentField) -> forms.Widget:
    if field.kind is FieldKind.JSON:
        rows = min(max((field.initial or "").count("\n") + 1, 2), 16)
        return forms.Textarea(attrs={"rows": rows, "spellcheck": "false", "class": "pgb-code"})
    if field.kind in {FieldKind.WHOLE, FieldKind.NUMBER}:
        return forms.NumberInput(attrs={"step": "any" if field.kind is FieldKind.NUMBER else "1"})
    return forms.TextInput(attrs={"autocomplete": "off"})


def _first_name(path: str) -> str:
    """The argument at the head of a path such as ``arguments.items[3].price``."""
    return path.removeprefix("arguments").removeprefix(".").partition(".")[0].partition("[")[0]
