"""Output of the demo: steps, a readable sample of the ops, a status line, the result.

On a terminal in colour, with the status line kept at the bottom; elsewhere plain lines.
"""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from walstream.cli.demo.tally import Arrival, Key, RowValues
from walstream.op import Kind
from walstream.row import NotSent, Value

_LINE_EVERY_S: Final = 0.125  # a person can follow
_PLAIN_STATUS_EVERY_S: Final = 5.0
_PLAIN_WIDTH: Final = 100
_LONG: Final = 80  # characters, from where a value is cut
_SHOWN: Final = 14  # characters of such a value
_TOO_LONG_FOR_KEY: Final = 20  # a timestamp in a key says little to a reader
_LATENCY_WIDTH: Final = 10
_SLOW_MS: Final = 250.0
_STYLES: Final = {
    Kind.INSERT: ("insert", "green"),
    Kind.UPDATE: ("update", "yellow"),
    Kind.DELETE: ("delete", "red"),
}


class Screen:
    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False)
        if not self._console.is_terminal:
            self._console.width = max(self._console.width, _PLAIN_WIDTH)
        self._live: Live | None = None
        self._sampler = _Sampler()
        self._plain_status_at = 0.0

    @property
    def terminal(self) -> bool:
        return self._console.is_terminal

    def say(self, text: str = "") -> None:
        """Print a line of rich's markup, never broken."""
        self._console.print(text, soft_wrap=True)

    def plain(self, text: str) -> None:
        self._console.print(text, markup=False, soft_wrap=True)

    @contextmanager
    def step(self, doing: str) -> Iterator[list[str]]:
        """Show that something is being done, then that it is, and how long it took.

        What the caller puts into the list is shown beside it.
        """
        began, details = time.monotonic(), list[str]()
        if self.terminal:
            with self._console.status(f"{doing} …", spinner="dots"):
                yield details
        else:
            yield details
        took_s = time.monotonic() - began
        detail = "".join(f"  [dim]{detail}[/]" for detail in details)
        self.say(f"[green]✓[/] {doing}{detail}  [dim]{took_s:.1f} s[/]")

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Keep the status line at the bottom."""
        if not self.terminal:
            yield
            return
        with Live(console=self._console, refresh_per_second=8, transient=True) as live:
            self._live = live
            try:
                yield
            finally:
                self._live = None

    def status(self, text: str) -> None:
        """Replace the status line; elsewhere print it now and then."""
        if self._live is not None:
            line = Text.from_markup(text, overflow="ellipsis")
            line.no_wrap = True
            self._live.update(line)
        elif not self.terminal and time.monotonic() >= self._plain_status_at:
            self._plain_status_at = time.monotonic() + _PLAIN_STATUS_EVERY_S
            self.say(text)

    def show(self, arrivals: Sequence[Arrival]) -> None:
        """Show the one that says most, if it is time for another line."""
        chosen = self._sampler.choose(arrivals)
        if chosen is not None:
            line = op_line(chosen, self._console.width)
            self._console.print(line, no_wrap=True, overflow="ellipsis", crop=True)

    def result(self, rows: Sequence[tuple[str, str, str]]) -> None:
        """Print the summary: what, how many, and a word about it."""
        table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
        table.add_column()
        table.add_column(justify="right")
        table.add_column(style="dim", overflow="fold")
        for row in rows:
            table.add_row(*row)
        self._console.print(table)


class _Sampler:
    """Chooses at most eight a second, and of these the kind that was shown least."""

    def __init__(self) -> None:
        self._next_at = 0.0
        self._shown: Counter[tuple[str, Kind]] = Counter()

    def choose(self, arrivals: Sequence[Arrival]) -> Arrival | None:
        now = time.monotonic()
        if not arrivals or now < self._next_at:
            return None
        self._next_at = now + _LINE_EVERY_S
        chosen = min(arrivals, key=lambda one: self._shown[_sort(one)])
        self._shown[_sort(chosen)] += 1
        return chosen


def _sort(arrival: Arrival) -> tuple[str, Kind]:
    return arrival.op.table.full_name, arrival.op.kind


def op_line(arrival: Arrival, width: int) -> Text:
    """Put one op on one line: what, where, which row, how, after how long."""
    word, style = _STYLES[arrival.op.kind]
    latency = show_ms(arrival.latency_ms)
    line = Text()
    line.append(f"  {word}  ", style=style)
    line.append(f"{arrival.op.table.name:<12} ", style="bold")
    line.append(f"{'·'.join(text or 'NULL' for text in _short(arrival.key)):<12} ")
    if arrival.repeated:
        line.append("seen before: a repeat that consumers skip", style="dim")
    else:
        line.append(_what(arrival), style=style)
    line.truncate(width - _LATENCY_WIDTH, overflow="ellipsis", pad=True)
    line.append(
        f"{latency:>{_LATENCY_WIDTH - 2}}",
        style="dim" if arrival.latency_ms < _SLOW_MS else "cyan",
    )
    return line


def _short(key: Key) -> list[str | None]:
    return [text for text in key if text is None or len(text) < _TOO_LONG_FOR_KEY]


def _what(arrival: Arrival) -> str:
    if arrival.op.kind is Kind.UPDATE and arrival.before and arrival.after:
        return _difference(arrival.before, arrival.after)
    row = arrival.before if arrival.op.kind is Kind.DELETE else arrival.after
    if row is None:
        return ""
    # the shop's keys come first, and stand before this already
    rest = list(row.items())[len(arrival.key) :]
    return ", ".join(f"{name} {_show(text)}" for name, text in rest if text is not None)


def _difference(before: RowValues, after: RowValues) -> str:
    changed = [
        f"{name} {_show(before.get(name))} → {_show(text)}"
        for name, text in after.items()
        if before.get(name) != text
    ]
    return ", ".join(changed) or "nothing changed"


def _show(text: Value) -> str:
    if text is None:
        return "NULL"
    if isinstance(text, NotSent):
        return "(not sent)"
    if len(text) > _LONG:
        return f"“{text[:_SHOWN]}…” {len(text) / 1000:.0f} kB"
    return text


def show_ms(milliseconds: float) -> str:
    """Three digits are enough."""
    if milliseconds < 1000:  # noqa: PLR2004 - of a second
        return f"{milliseconds:.0f} ms"
    return f"{milliseconds / 1000:.1f} s"
