"""The page's tables: sinks, polled tables, backfills. Pure.

On a narrow screen a row becomes a list, each figure with its column's name; the roles
keep it a table for who hears it.
"""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final, NamedTuple

from walstream.service.http.figures import (
    NONE,
    duration,
    listed,
    moment,
    number,
    plural,
    rate,
)
from walstream.status.model import SourceStatus

_LOOKS: Final = {"delivering": ("good", "●"), "waiting": ("warn", "◌")}
_CALM: Final = frozenset({"starting", "new", "lent", "stopped"})  # and so its sinks


class Cell(NamedTuple):
    text: str
    right: bool = False
    look: str = ""  # of a state


def sinks(source: SourceStatus, key: str) -> str:
    """Show where a source's ops go."""
    rows = [
        (
            sink.name,
            [
                Cell(sink.kind),
                _state(sink.state, calm=source.state in _CALM and not source.exit_code),
                Cell(number(sink.in_flight), right=True),
                Cell(number(sink.dropped), right=True),
                Cell(number((sink.failed or 0) + (sink.parked or 0)), right=True),
            ],
        )
        for sink in source.sinks
    ]
    heads = ["Sink", "Kind", "State", "In flight", "Dropped", "Failed or parked"]
    return _table(f"{key}/sinks", "Sinks", heads, rows)


def polled(source: SourceStatus, key: str) -> str:
    """Show how far each table of a sql source is."""
    rows = [
        (
            name,
            [
                Cell(number(one.position), right=True),
                Cell(number(one.rows), right=True),
                Cell(rate(one.rows_per_s), right=True),
                Cell(number(one.missing_keys), right=True),
                Cell(moment(one.last_row_at)),
            ],
        )
        for name, one in source.tables.items()
    ]
    heads = ["Table", "Position", "Rows", "Rows/s", "Missing keys", "Last row"]
    return _table(f"{key}/tables", "Polled tables", heads, rows)


def backfill(source: SourceStatus, key: str) -> str:
    """Show what is left of the rows that were there before."""
    found = source.backfill
    text = ""
    if found is not None and found.state != "done":
        said = [f"{found.state}", f"{plural(len(found.tables), 'table')} left"]
        said.append(f"{number(found.rows)} rows delivered")
        if found.rows_per_s is not None:
            said.append(f"{rate(found.rows_per_s)} rows/s")
        if found.left_s is not None:
            said.append(f"about {duration(found.left_s)} left")
        bar = ""
        if found.share is not None:
            share = f"{found.share:.0%}"
            said.append(share)
            bar = (
                f'<progress max="1" value="{found.share:.3f}"'
                f' aria-label="Backfill of {escape(source.name)}">{share}</progress>'
            )
        names = f'<p class="soft">{escape(listed(found.tables))}</p>'
        text = f"<h3>Backfill</h3><p>{escape(', '.join(said))}</p>{bar}{names}"
    rows = [
        (
            name,
            [
                Cell(one.state),
                Cell(number(one.rows), right=True),
                Cell(one.error or one.remark),
            ],
        )
        for name, one in source.beside.items()
        if one.state != "done"
    ]
    heads = ["Table", "State", "Rows", "Why it waits"]
    beside = _table(f"{key}/beside", "Backfill beside the stream", heads, rows)
    return f'<div data-k="{key}/backfill">{text}</div>{beside}'


def _state(name: str, *, calm: bool) -> Cell:
    look, sign = _LOOKS.get(name, ("calm", "◌") if calm else ("bad", "✗"))
    return Cell(f"{sign} {name}", look=look)


def _table(
    key: str,
    caption: str,
    heads: Sequence[str],
    rows: Iterable[tuple[str, Sequence[Cell]]],
) -> str:
    """Write one; nothing, where it has no rows."""
    made = [_row(key, name, heads, cells) for name, cells in rows]
    if not made:
        return ""
    right = {
        index for _, cells in rows for index, cell in enumerate(cells, 1) if cell.right
    }
    names = "".join(
        f'<th scope="col" role="columnheader"{_right(index in right)}>'
        f"{escape(head)}</th>"
        for index, head in enumerate(heads)
    )
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(caption)}">'
        f'<table role="table"><caption>{escape(caption)}</caption>'
        f'<thead role="rowgroup"><tr role="row">{names}</tr></thead>'
        f'<tbody role="rowgroup">{"".join(made)}</tbody></table></div>'
    )


def _row(key: str, name: str, heads: Sequence[str], cells: Sequence[Cell]) -> str:
    written = "".join(
        f'<td role="cell"{_right(cell.right)} data-of="{escape(head)}">'
        f'<span data-k="{key}/{escape(name)}/{index}">{_shown(cell)}</span></td>'
        for index, (head, cell) in enumerate(zip(heads[1:], cells, strict=True))
    )
    head = f'<th scope="row" role="rowheader">{escape(name)}</th>'
    return f'<tr role="row">{head}{written}</tr>'


def _shown(cell: Cell) -> str:
    text = escape(cell.text) or NONE
    return f'<span class="state {cell.look}">{text}</span>' if cell.look else text


def _right(right: bool) -> str:  # noqa: FBT001
    return ' class="number"' if right else ""
