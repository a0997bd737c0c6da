"""Tables on a terminal: no wider than it where that can be, and both ends of a long name are to be read."""

import pytest

from django_pgbroker.management.columns import align_columns
from django_pgbroker.management.listing import fit

HEAD = ("id", "queue", "job type")


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_lines_are_no_wider_than_the_terminal(width):
    rows = [["1", f"queue-of-customer-with-a-long-name-{number}", "shop.reports.yearly.render"] for number in range(12)]
    lines = align_columns(HEAD, fit(HEAD, rows, width))
    assert max(map(len, lines)) <= width
    assert len({line.split()[1] for line in lines[1:]}) == 12, "names are told apart by their ends"


def test_what_fits_is_whole_and_where_nothing_can_fit_columns_keep_a_readable_width():
    assert fit(HEAD, [["1", "mail", "shop.send"]], 80) == [["1", "mail", "shop.send"]]
    [row] = fit(HEAD, [["1", "q" * 50, "t" * 50]], 10)
    assert [len(cell) for cell in row] == [1, 8, 8]
