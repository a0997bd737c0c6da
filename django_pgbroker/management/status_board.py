"""A live board on the terminal: queues, workers, dead letters. Run by ``pgbroker_status --watch``; needs rich."""

import signal
import time
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC
from typing import NamedTuple

from django.db import Error, connections
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from django_pgbroker.domain.durations import describe_age, describe_seconds
from django_pgbroker.domain.presence import Presence, describe_queues
from django_pgbroker.management.columns import make_printable
from django_pgbroker.management.glyphs import draw_bar, draw_curve
from django_pgbroker.operations.board import Board, Rate, read_board
from django_pgbroker.operations.overview import QueueOverview, WorkerOverview, describe_count, name_unserved

#: Pictures that a curve goes back.
_REMEMBERED = 60
_BAR = 8
_CURVE = 10

#: Lines beside the rows: the title, three heads, two lines between, two that tell of more rows, a notice.
_FRAME_LINES = 9

#: Colours of the terminal's own palette, which its owner has made readable; each stands beside a word.
_PRESENCE_STYLES = {Presence.ALIVE: "green", Presence.DRAINING: "magenta", Presence.LOST: "bold red"}


class Outage(NamedTuple):
    """The database is away."""

    since: float
    error: str


class StatusBoard:
    """Reads and draws until Ctrl-C or SIGTERM.

    Args:
        database: alias.
        seconds: between two pictures.
        console: where to draw.
    """

    def __init__(self, database: str, seconds: float, console: Console) -> None:
        self._database = database
        self._seconds = seconds
        self._console = console
        self._depths: dict[str, deque[int | None]] = defaultdict(lambda: deque(maxlen=_REMEMBERED))
        self._outage: Outage | None = None

    def run(self) -> None:
        """Draw; the first reading is before the screen is taken over, so that its errors are ordinary ones.

        Raises:
            ConfigurationError: the alias cannot be used.
            django.db.Error: the database is away from the beginning.
        """
        board = self._read()
        live = Live(self.draw(board), console=self._console, screen=True, auto_refresh=False)
        with _ending_on_signals():
            try:
                live.start()
                while True:
                    live.update(self.draw(board), refresh=True)
                    time.sleep(self._seconds)
                    board = self._read_again(board)
            finally:
                # not left to `with live`: a signal while it starts would leave the terminal as it is
                live.stop()

    def _read(self) -> Board:
        board = read_board(self._database)
        for queue in board.queues:
            self._depths[queue.name].append(queue.pending)
        return board

    def _read_again(self, last: Board) -> Board:
        """The new state, or the last one while the database is away."""
        try:
            board = self._read()
        except Error as error:
            connections[self._database].close()
            since = self._outage.since if self._outage else time.monotonic()
            self._outage = Outage(since, make_printable(str(error).strip().partition("\n")[0]))
            return last
        self._outage = None
        return board

    def draw(self, board: Board) -> RenderableType:
        """The whole picture, no larger than the terminal."""
        queues, workers, dead = board.queues, board.workers, board.dead_letters
        lines = max(self._console.height - _FRAME_LINES, 3)
        queue_lines, worker_lines, dead_lines = share_lines(lines, [len(queues), len(workers), len(dead)])
        return Group(
            self._draw_title(board),
            self._draw_queues(board, queue_lines),
            Text(),
            self._draw_workers(board, worker_lines),
            Text(),
            self._draw_dead_letters(board, dead_lines),
            *self._notices(board),
        )

    def _draw_title(self, board: Board) -> RenderableType:
        done, failed = (sum(rates) for rates in zip(*board.rates.values(), strict=True)) if board.rates else (0.0, 0.0)
        grid = Table.grid(expand=True)
        grid.add_column(no_wrap=True, overflow="ellipsis")
        grid.add_column(justify="right", no_wrap=True)
        title = Text.assemble(
            ("pgbroker", "bold"), f" on {make_printable(self._database)}   {done:,.1f} done/s   ",
            (f"{failed:,.1f} failed/s", "red" if failed else ""),
        )  # fmt: skip
        grid.add_row(title, Text(f"{board.read_at.astimezone(UTC):%H:%M:%S} UTC, Ctrl-C ends", "dim"))
        return grid

    def _draw_queues(self, board: Board, lines: int) -> Table:
        queues = board.queues
        most = max((queue.pending or 0 for queue in queues), default=0)
        table = _make_table(
            "queue", "pending:", "", "lately", "running:", "later:", "oldest:", "done/s:", title_ratio=(0,)
        )
        unserved = name_unserved(queues, board.workers)
        for queue in queues[:lines]:
            mark = "paused" if queue.is_paused else "no worker" if queue.name in unserved else ""
            table.add_row(*self._queue_cells(queue, most, board.rates.get(queue.name, Rate()), mark))
        _add_rest(table, len(queues) - lines, "No queue yet." if not queues else "")
        return table

    def _queue_cells(self, queue: QueueOverview, most: int, rate: Rate, mark: str) -> list[Text]:
        oldest = queue.oldest_pending_seconds
        name = Text(make_printable(queue.name))
        if mark:
            name = Text.assemble((f"{mark} ", "bold magenta"), name)
        later = None if queue.scheduled is None else sum(
            count or 0 for count in (queue.scheduled, queue.parked, queue.blocked)
        )  # fmt: skip
        return [
            name,
            Text(describe_count(queue.pending) + ("*" if queue.is_stale else "")),
            Text(draw_bar(queue.pending or 0, most, _BAR, is_plain=self._is_plain), "cyan"),
            Text(draw_curve(self._depths[queue.name], _CURVE, is_plain=self._is_plain), "cyan"),
            Text(describe_count(queue.running)),
            Text(describe_count(later)),
            Text("" if oldest is None else describe_seconds(oldest)),
            Text(f"{rate.done:,.1f}"),
        ]

    def _draw_workers(self, board: Board, lines: int) -> Table:
        workers = board.workers
        table = _make_table("worker", "presence", "running:", "", "heartbeat:", "queues", title_ratio=(0, 5))
        for worker in workers[:lines]:
            table.add_row(*self._worker_cells(worker))
        _add_rest(table, len(workers) - lines, "No worker: nothing is being run." if not workers else "")
        return table

    def _worker_cells(self, worker: WorkerOverview) -> list[Text]:
        return [
            Text(make_printable(worker.name)),
            Text(worker.presence.value, _PRESENCE_STYLES.get(worker.presence, "")),
            Text(f"{worker.running}/{worker.concurrency}"),
            Text(draw_bar(worker.running, worker.concurrency, _BAR, is_plain=self._is_plain), "green"),
            Text(describe_age(worker.heartbeat_seconds_ago)),
            Text(make_printable(describe_queues(worker.queues))),
        ]

    def _draw_dead_letters(self, board: Board, lines: int) -> Table:
        table = _make_table("dead letter", "died:", "type", "error", title_ratio=(2, 3))
        for dead in board.dead_letters[:lines]:
            table.add_row(
                Text(str(dead.job_id)),
                Text(describe_age(dead.died_seconds_ago)),
                Text(make_printable(dead.job_type)),
                Text(make_printable(dead.error), "red"),
            )
        _add_rest(table, 0, "None." if not board.dead_letters else "")
        return table

    def _notices(self, board: Board) -> Iterator[RenderableType]:
        if self._outage:
            away = describe_seconds(time.monotonic() - self._outage.since)
            text = f"The database has been away for {away}; the picture is old. {self._outage.error}"
            yield Text(text, "bold red", no_wrap=True, overflow="ellipsis")
        elif any(queue.is_stale for queue in board.queues):
            text = "Figures marked * are old: is a worker or pgbroker_reaper running?"
            yield Text(text, "magenta", no_wrap=True, overflow="ellipsis")

    @property
    def _is_plain(self) -> bool:
        return self._console.options.ascii_only


def share_lines(total: int, wanted: list[int]) -> list[int]:
    """Share the lines of the terminal: who wants few gets them, and the others share the rest.

    Args:
        total: lines there are.
        wanted: by each section; everyone gets one at least, for what it says when it has nothing.
    """
    shares = [1] * len(wanted)
    for _ in range(total - len(wanted)):
        hungry = [index for index, want in enumerate(wanted) if shares[index] < want]
        if not hungry:
            break
        shares[min(hungry, key=lambda index: (shares[index], index))] += 1
    return shares


def _make_table(*heads: str, title_ratio: tuple[int, ...]) -> Table:
    """A table without lines; a head that ends with a colon is that of numbers, on the right."""
    table = Table(box=None, expand=True, padding=(0, 1, 0, 0), header_style="bold", pad_edge=False)
    for index, head in enumerate(heads):
        is_wide = index in title_ratio
        table.add_column(
            head.rstrip(":"),
            justify="right" if head.endswith(":") else "left",
            no_wrap=True,
            overflow="ellipsis",
            ratio=1 if is_wide else None,
            min_width=_CURVE if head == "lately" else _BAR if not head else None,
        )
    return table


def _add_rest(table: Table, hidden: int, empty: str) -> None:
    caption = empty or (f"and {hidden} more: pgbroker_status" if hidden > 0 else "")
    if caption:
        table.caption = Text(caption, "dim")
        table.caption_justify = "left"


@contextmanager
def _ending_on_signals() -> Iterator[None]:
    """Ctrl-C and SIGTERM leave the block, so that the terminal is as it was."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, before)
