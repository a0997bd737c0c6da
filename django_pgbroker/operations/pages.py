"""One page of a long list: the newest rows before a position, at the same cost however long the list is.

No COUNT and no OFFSET; a filter that no index serves looks at a bounded number of rows. Used by the lists of commands.
"""

from dataclasses import dataclass
from typing import Any

from django.db.models import Min, QuerySet

#: A filter that no index serves looks at this many rows a page, so that a rare value cannot read the whole table.
WINDOW_ROWS = 100_000

#: More rows are never put on one page.
MOST_ROWS = 10_000


@dataclass(frozen=True, slots=True)
class Page:
    """Rows, newest first.

    Args:
        rows: what was found.
        next_before: the position from which the next page goes on; ``None`` at the end of the list. Behind a filter a
            page may be short, even empty, and the list go on all the same.
    """

    rows: tuple[Any, ...]
    next_before: int | None


def read_page(
    everything: QuerySet[Any, Any],
    wanted: QuerySet[Any, Any],
    *,
    before: int | None,
    limit: int,
    is_served: bool,
    window_rows: int = WINDOW_ROWS,
) -> Page:
    """Read one page.

    Args:
        everything: all rows of the list, which a window is measured on.
        wanted: those of them that are asked for.
        before: only rows with a lower id.
        limit: rows on a page.
        is_served: whether an index finds the wanted rows in the order of their ids, so that no window is needed.
        window_rows: how many rows a page looks at where none does.

    Raises:
        django.db.DatabaseError: as the server answered.
    """
    if before is not None:
        everything, wanted = everything.filter(pk__lt=before), wanted.filter(pk__lt=before)
    edge = None
    if not is_served:
        looked_at = everything.select_related(None).order_by("-pk").values("pk")[:window_rows]
        edge = looked_at.aggregate(edge=Min("pk"))["edge"]
        wanted = wanted.filter(pk__gte=edge) if edge is not None else wanted.none()
    rows = list(wanted.order_by("-pk")[: limit + 1])
    if len(rows) > limit:
        return Page(tuple(rows[:limit]), rows[limit - 1].pk)
    goes_on = edge is not None and everything.filter(pk__lt=edge).order_by("-pk").values("pk")[:1].exists()
    return Page(tuple(rows), edge if goes_on else None)
