"""Screens with verbs: buttons on the pages of objects, actions on selections, and verbs for all that match."""

from typing import Any, ClassVar, override

from admin_extra_buttons.mixins import ExtraButtonsMixin
from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.views.main import ERROR_FLAG
from django.core.checks import CheckMessage
from django.core.exceptions import PermissionDenied
from django.forms import Media
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse

from django_pgbroker.admin.act import Act
from django_pgbroker.admin.choice import (
    Choice,
    choose_jobs,
    count_words,
    describe_filter,
    describe_gone,
    read_filter,
    remark_on_matches,
)
from django_pgbroker.admin.confirmation import CONFIRMED, confirm_or_carry_out
from django_pgbroker.admin.display import is_key
from django_pgbroker.admin.keyset import AFTER, BEFORE
from django_pgbroker.admin.screen import ReadOnlyScreen
from django_pgbroker.domain.errors import PgbrokerError
from django_pgbroker.domain.states import JobState
from django_pgbroker.domain.verbs import Verb
from django_pgbroker.operations.job_changes import Matches, count_matching
from django_pgbroker.operations.permissions import may


class ActingScreen(ExtraButtonsMixin, ReadOnlyScreen):
    """A screen whose rows are still never edited: what changes goes through the operations.

    The decorator ``offers`` says which acts it has.
    """

    acts: ClassVar[tuple[Act, ...]] = ()

    #: Of the rows, for the filters of a list; empty where no act is for all that match.
    states: ClassVar[frozenset[JobState]] = frozenset()
    #: Whether all rows may be meant without any filter.
    is_whole_list_offered = False
    change_list_template = ReadOnlyScreen.change_list_template
    change_form_template = ReadOnlyScreen.change_form_template

    @property
    @override
    def media(self) -> Media:
        """Without the scripts and styles of the buttons' package: these buttons need none."""
        return ReadOnlyScreen.media.fget(self)  # type: ignore[attr-defined,no-any-return]

    @override
    def check(self, **kwargs: Any) -> list[CheckMessage]:
        """Django's own checks: those of the buttons' package would ask the database for permissions."""
        return ModelAdmin.check(self, **kwargs)

    @override
    def get_changeform_buttons(self, context: Any) -> list[Any]:
        """What cannot be taken back stands last."""
        return sorted(super().get_changeform_buttons(context), key=_is_destructive)

    @override
    def get_changelist_buttons(self, context: Any) -> list[Any]:
        """What cannot be taken back stands last."""
        return sorted(super().get_changelist_buttons(context), key=_is_destructive)

    def target_of(self, row: Any) -> Any:
        """What the operations call this row."""
        return row.pk

    def phrase_of(self, row: Any) -> str:
        """This row in words."""
        return f"{self.opts.verbose_name} {row}"

    def short_phrase_of(self, row: Any) -> str:
        """This row in few words, for the button."""
        return str(row)

    def remark_on(self, act: Act, row: Any) -> str:
        """What else is to be known before this is done to this row."""
        return ""

    def place_of(self, row: Any) -> dict[str, str]:
        """Queue and tenant of this row, for the permission."""
        return {}

    def is_permitted(self, request: HttpRequest, verb: Verb, row: Any = None) -> bool:
        """Whether the user may see this screen and do this, in general or to one row."""
        place = {} if row is None else self.place_of(row)
        return self.has_view_permission(request, row) and may(request.user, verb, **place)

    def require(self, request: HttpRequest, verb: Verb, row: Any = None) -> None:
        """Go on only if the user may.

        Raises:
            PermissionDenied: the user may not.
        """
        if not self.is_permitted(request, verb, row):
            raise PermissionDenied

    def listed_states(self, request: HttpRequest) -> frozenset[JobState]:
        """The states of the rows that the filters of the list leave."""
        chosen = request.GET.get("state", "")
        return frozenset(state for state in self.states if chosen in {"", str(state.value)})

    def is_filtered(self, request: HttpRequest) -> bool:
        """Whether all that match are something that may be meant: a filter is in use, or none is needed."""
        return self.is_whole_list_offered or any(request.GET.get(name) for name in self.filter_names())

    def why_not_all(self, request: HttpRequest) -> str:
        """Why all that match cannot be meant by this address; empty when they can."""
        if request.GET.get("q"):
            return "All that match are those of filters, not of a search. Nothing was done."
        known = {*self.filter_names(), "q", BEFORE, AFTER, ERROR_FLAG}
        if unknown := sorted(set(request.GET) - known):
            return f"This list has no filter {unknown[0][:40]!r}. Nothing was done: choose a filter beside the list."
        if not self.is_filtered(request):
            return f"That would be all {self.opts.verbose_name_plural}. Nothing was done: choose a filter first."
        return ""

    def is_offered_for_one(self, request: HttpRequest, act: Act, row: Any) -> bool:
        """Whether the page of this row has the button."""
        return row is not None and act.applies_to(row) and self.is_permitted(request, act.verb, row)

    def is_offered_for_all(self, request: HttpRequest, act: Act) -> bool:
        """Whether the list has the button for all that match."""
        return (
            not self.why_not_all(request)
            and bool(self.listed_states(request) & act.verb.filter_states)
            and self.is_permitted(request, act.verb)
        )

    def filter_names(self) -> list[str]:
        """The parameters of the filters."""
        return [str(getattr(each, "parameter_name", "")) for each in self.list_filter]

    @override
    def get_actions(self, request: HttpRequest, action_location: Any = None) -> dict[str, Any]:
        """The acts that the user may do; none of the site's own, which could not bear these tables."""
        location = () if action_location is None else (action_location,)
        permitted = {act.name for act in self.bulk_acts() if self.is_permitted(request, act.verb)}
        found = super().get_actions(request, *location)
        return {name: each for name, each in found.items() if name in permitted}

    @override
    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The list, knowing whether it has a menu for all that match."""
        offered = any(self.is_offered_for_all(request, act) for act in self.bulk_acts())
        return super().changelist_view(request, {"offers_for_all": offered, **(extra_context or {})})

    @override
    def response_action(self, request: HttpRequest, *args: Any, **options: Any) -> HttpResponse | None:
        """Refuse keys that are none before Django asks the database for them."""
        if not all(is_key(each) for each in request.POST.getlist(ACTION_CHECKBOX_NAME)):
            return None
        return super().response_action(request, *args, **options)

    def bulk_acts(self) -> list[Act]:
        """Those for many."""
        return [act for act in self.acts if act.is_bulk]

    def list_url(self, filters: QueryDict | None = None) -> str:
        """The list, on this site."""
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist"
        url = reverse(name, current_app=self.admin_site.name)
        return f"{url}?{filters.urlencode()}" if filters else url

    def page_url(self, pk: object) -> str:
        """The page of one row, on this site."""
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_change"
        return reverse(name, args=(pk,), current_app=self.admin_site.name)

    def act_on_one(self, request: HttpRequest, act: Act, pk: int) -> HttpResponse:
        """The button on the page of a row; a row that is gone leads to that page, which says so."""
        self.require(request, act.verb)
        row = self.get_object(request, str(pk))
        if row is None:
            return HttpResponseRedirect(self.page_url(pk))
        self.require(request, act.verb, row)
        choice = Choice(
            self.target_of(row),
            self.phrase_of(row),
            self.page_url(pk),
            subject=row,
            short=self.short_phrase_of(row),
            remark=self.remark_on(act, row),
        )
        response = confirm_or_carry_out(self, request, act, choice)
        if response.status_code == 302 and self.get_object(request, str(pk)) is None:
            return HttpResponseRedirect(self.list_url())
        return response

    def act_on_selection(self, request: HttpRequest, act: Act) -> HttpResponse | None:
        """The action on the rows with a tick; never on more, whatever is posted."""
        ids = sorted({int(each) for each in request.POST.getlist(ACTION_CHECKBOX_NAME) if is_key(each)})
        ids = ids[: self.list_per_page]
        name = str(self.opts.verbose_name)
        # keys of other tables are none of this list, and its permission to view is none for theirs
        rows = list(self.get_queryset(request).filter(pk__in=ids).defer(*self.list_defer).order_by("pk"))
        gone = len(ids) - len(rows)
        if gone and (CONFIRMED in request.POST or not rows):
            self.message_user(request, describe_gone(gone, name), messages.WARNING)
        if not rows:
            return None
        return confirm_or_carry_out(
            self, request, act, choose_jobs(rows, gone, name, request.get_full_path(), act.name)
        )

    def act_on_matching(self, request: HttpRequest, act: Act) -> HttpResponse:
        """The button above the list, for all that its filters leave."""
        self.require(request, act.verb)
        if why_not := self.why_not_all(request):
            self.message_user(request, why_not, messages.ERROR)
            return HttpResponseRedirect(self.list_url())
        name = str(self.opts.verbose_name)
        filters = {name: request.GET[name] for name in self.filter_names() if name in request.GET}
        states = self.listed_states(request) & act.verb.filter_states
        if not states:
            words = f"{act.verb.label}: not for jobs in this state. Nothing was done."
            self.message_user(request, words, messages.WARNING)
            return HttpResponseRedirect(self.list_url())
        try:
            chosen = read_filter(states, filters)
            matches = count_matching(act.verb, chosen)
        except PgbrokerError as error:
            self.message_user(request, str(error), messages.ERROR)
            return HttpResponseRedirect(self.list_url())
        back = request.GET.copy()
        for position in (BEFORE, AFTER):
            back.pop(position, None)
        if matches == Matches(0, is_exact=True):
            self.message_user(request, "No job matches. Nothing was done.", messages.WARNING)
            return HttpResponseRedirect(self.list_url(back))
        choice = Choice(
            chosen,
            describe_filter(chosen, matches, name),
            self.list_url(back),
            short=count_words(matches.count, name) if matches.is_exact else "",
            remark=remark_on_matches(matches, name),
            is_many=True,
        )
        return confirm_or_carry_out(self, request, act, choice)


def _is_destructive(handler: Any) -> bool:
    return bool(handler.config["tone"])
