"""What all screens share: read-only, search by id, paging by key, a detail page made of sections."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, override

from django.contrib import admin, messages
from django.contrib.admin import ShowFacets
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.text import capfirst

from django_pgbroker.admin.display import is_key
from django_pgbroker.admin.keyset import KeysetChangeList
from django_pgbroker.admin.section import Section
from django_pgbroker.models.clock import Clock

type Rows = QuerySet[Any, Any]

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Any]
else:
    _ModelAdmin = admin.ModelAdmin


class ReadOnlyScreen(_ModelAdmin):
    """A list and a detail page that change nothing, for staff with the view permission of the model."""

    #: Columns of the key that the list is paged by, newest first; an index must lead with them.
    key: Sequence[str] = ("id",)
    #: The column that the search box compares with a number; empty: no search box.
    search_column = "id"
    #: Columns that the list does not read.
    list_defer: Sequence[str] = ()
    #: One sentence above the list, and the one in place of an empty list.
    note = ""
    empty_note = "Nothing here."

    actions = None
    sortable_by = ()
    list_per_page = 100
    show_full_result_count = False
    show_facets = ShowFacets.NEVER
    search_fields: ClassVar[tuple[str, ...]] = ("id",)  # draws the box; get_search_results does the search
    search_help_text = "Search takes the number of one job."
    change_list_template = "django_pgbroker/admin/list.html"
    change_form_template = "django_pgbroker/admin/detail.html"

    class Media:
        css = {"all": ("django_pgbroker/admin.css",)}

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nobody adds rows by hand: that is what ``enqueue`` is for."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nobody edits rows: states, tokens and attempts move by the broker's statements alone."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nobody deletes rows: retention does."""
        return False

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> tuple[()]:
        """No form fields: the detail page is made of sections."""
        return ()

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[KeysetChangeList]:
        """Page by key."""
        return KeysetChangeList

    def get_queryset(self, request: HttpRequest) -> Rows:
        """All rows, each with the database's clock as ``read_at``: ages never mix two clocks."""
        rows: Rows = super().get_queryset(request).annotate(read_at=Clock())
        return rows

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        """Only the filters on the screen: any other column would read the whole table."""
        return lookup in {getattr(spec, "parameter_name", None) for spec in self.list_filter}

    def index_serves(self, chosen: Mapping[str, str]) -> bool:
        """Whether these filters find their rows by an index, so that a page needs no bound on the rows it looks at.

        Args:
            chosen: parameter to chosen value of the filters in use.
        """
        return False

    def get_search_results(self, request: HttpRequest, queryset: Rows, search_term: str) -> tuple[Rows, bool]:
        """The rows with exactly this number. Django's ``=id`` would compare text and read the whole table."""
        term = search_term.strip().removeprefix("#")
        if not term:
            return queryset, False
        if not is_key(term):
            self.message_user(request, str(self.search_help_text), messages.WARNING)
            return queryset.none(), False
        return queryset.filter(**{self.search_column: int(term)}), False

    def heading_of(self, obj: Any) -> str:
        """The heading of the page of ``obj``."""
        return capfirst(str(obj))

    def sections(self, request: HttpRequest, obj: Any) -> list[Section]:
        """The detail page of ``obj``."""
        raise NotImplementedError

    @override
    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Any = None,
    ) -> HttpResponse:
        """Hand the sections to the template; permissions have been checked by then."""
        if obj is not None:
            context |= {"title": self.heading_of(obj), "subtitle": None}
        context["sections"] = self.sections(request, obj) if obj is not None else []
        return super().render_change_form(request, context, add, change, form_url, obj)
