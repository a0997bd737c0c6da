"""Lists that page by key. A page costs the same at any depth and size: no COUNT, no OFFSET, bounded filtering."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, cast

from django.contrib.admin import SimpleListFilter
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.db.models import Max, Min, Q, QuerySet
from django.http import HttpRequest
from django.utils.text import capfirst

from django_pgbroker.domain.options import LARGEST_ID

type Key = tuple[int, ...]

BEFORE, AFTER = "before", "after"

#: A filter that no index serves looks at this many rows a page, so that a rare value cannot read the whole table.
WINDOW_ROWS = 100_000


class KeysetScreen(Protocol):
    """What the list asks of its screen."""

    key: Sequence[str]
    list_defer: Sequence[str]

    def index_serves(self, chosen: Mapping[str, str]) -> bool:
        """Whether these filters need no window."""


class Window(NamedTuple):
    """The rows that one page looks at: up to the leading key ``edge``; ``goes_on`` when there are rows behind it."""

    edge: int | None
    goes_on: bool


class KeysetChangeList(ChangeList):
    """The newest rows first; ``?before=KEY`` and ``?after=KEY`` lead to older and newer ones.

    The screen gives the columns of the key in ``key`` and says by ``index_serves`` which filters need no window.
    """

    newer_query: str | None = None
    older_query: str | None = None
    newest_query: str | None = None
    is_windowed = False
    window_rows = WINDOW_ROWS

    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().__init__(request, *args, **kwargs)
        self.title = capfirst(str(self.opts.verbose_name_plural))

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Any, Any]:
        """Take the position out of the parameters, so that a new filter or search starts at the newest rows."""
        positions = {}
        for name in (BEFORE, AFTER):
            self.filter_params.pop(name, None)
            if (text := self.params.pop(name, None)) is not None:
                positions[name] = self._parse_key(text)
        self.before: Key | None = positions.get(BEFORE)
        self.after: Key | None = None if self.before else positions.get(AFTER)
        queryset = super().get_queryset(request, exclude_parameters)
        return queryset.defer(*self.screen.list_defer) if self.screen.list_defer else queryset

    @property
    def screen(self) -> KeysetScreen:
        """The screen this list belongs to."""
        return cast("KeysetScreen", self.model_admin)

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any, Any]) -> list[Any]:
        """The key and nothing else: another order would have to sort the table."""
        return [f"-{name}" for name in self.screen.key]

    def get_ordering_field_columns(self) -> dict[int, Literal["asc", "desc"]]:
        """No column is drawn as sortable."""
        return {}

    def get_results(self, request: HttpRequest) -> None:
        """Read one page, and find out whether there are rows on either side."""
        rows = self._read_newer(self.after) if self.after else self._read_older(self.before)
        self.newest_query = self.get_query_string() if self.before or self.newer_query else None
        self.result_list = rows
        self.result_count = self.full_result_count = len(rows)
        self.show_full_result_count = self.show_all = self.can_show_all = self.multi_page = False
        self.show_admin_actions = bool(rows)
        self.paginator = self.model_admin.get_paginator(request, cast("Any", rows), self.list_per_page)
        self.page_num = 1

    def _read_older(self, before: Key | None) -> list[Any]:
        reached = self._beyond(before, "lt") if before else Q()
        window = self._find_window(reached, "lt")
        within = Q() if window.edge is None else Q(**{f"{self._lead}__gte": window.edge})
        rows = list(self.queryset.filter(reached, within)[: self.list_per_page + 1])
        shown = rows[: self.list_per_page]
        if len(rows) > len(shown):
            self._link_older(self._key_of(shown[-1]))
        elif window.goes_on:
            self._link_older((window.edge or 0, *[0] * (len(self.screen.key) - 1)))
        if before:
            self._link_newer(self._key_of(shown[0]) if shown else before)
        return shown

    def _read_newer(self, after: Key) -> list[Any]:
        reached = self._beyond(after, "gt")
        window = self._find_window(reached, "gt")
        within = Q() if window.edge is None else Q(**{f"{self._lead}__lte": window.edge})
        rows = list(self.queryset.filter(reached, within).order_by(*self.screen.key)[: self.list_per_page + 1])
        shown = rows[: self.list_per_page][::-1]
        if len(rows) > len(shown):
            self._link_newer(self._key_of(shown[0]))
        elif window.goes_on:
            self._link_newer((window.edge or 0, *[LARGEST_ID] * (len(self.screen.key) - 1)))
        self._link_older(self._key_of(shown[-1]) if shown else after)
        return shown

    def _find_window(self, reached: Q, direction: str) -> Window:
        """Bound what a filter without an index may read, from the position on."""
        specs = [spec for spec in self.filter_specs if isinstance(spec, SimpleListFilter)]
        chosen = {str(spec.parameter_name): value for spec in specs if (value := spec.value()) is not None}
        self.is_windowed = bool(chosen) and not self.query and not self.screen.index_serves(chosen)
        if not self.is_windowed:
            return Window(None, goes_on=False)
        order, outermost = ("-", Min(self._lead)) if direction == "lt" else ("", Max(self._lead))
        everything = self.root_queryset.select_related(None).order_by(*[order + name for name in self.screen.key])
        looked_at = everything.filter(reached).values(self._lead)[: self.window_rows]
        edge = looked_at.aggregate(edge=outermost)["edge"]
        behind = Q(**{f"{self._lead}__{direction}": edge})
        return Window(edge, goes_on=edge is not None and everything.filter(behind).values(self._lead)[:1].exists())

    @property
    def _lead(self) -> str:
        return str(self.screen.key[0])

    def _beyond(self, key: Key, direction: str) -> Q:
        """Rows on one side of ``key``; the leading column alone bounds the index scan."""
        names = self.screen.key
        if len(names) == 1:
            return Q(**{f"{names[0]}__{direction}": key[0]})
        nearer = Q(**{f"{names[0]}__{direction}": key[0]}) | Q(**{f"{names[1]}__{direction}": key[1]})
        return Q(**{f"{names[0]}__{direction}e": key[0]}) & nearer

    def _key_of(self, row: Any) -> Key:
        return tuple(getattr(row, name) for name in self.screen.key)

    def _link_older(self, key: Key) -> None:
        self.older_query = self.get_query_string({BEFORE: _word(key)})

    def _link_newer(self, key: Key) -> None:
        self.newer_query = self.get_query_string({AFTER: _word(key)})

    def _parse_key(self, text: str) -> Key:
        parts = text.split("-")
        if len(parts) != len(self.screen.key) or not all(part.isascii() and part.isdigit() for part in parts):
            raise IncorrectLookupParameters(f"{text!r} is no position in this list")
        return tuple(min(int(part), LARGEST_ID) if len(part) < 25 else LARGEST_ID for part in parts)


def _word(key: Key) -> str:
    return "-".join(map(str, key))
