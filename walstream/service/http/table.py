"""One table of the page. Pure.

On a narrow screen a row becomes a list, each figure with its column's name; the roles
keep it a table for screen readers.
"""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from walstream.service.http.figures import NONE


class Cell(NamedTuple):
    text: str
    right: bool = False
    look: str = ""  # of a state: good | calm | warn | bad
    href: str = ""  # a place of this page
    whole: bool = False  # on a narrow screen it has a line of its own


Row = tuple[str, str | Cell, Sequence[Cell]]
"""Its key, its head, and its other cells."""


def table(
    key: str, caption: str, heads: Sequence[str], rows: Sequence[Row], more: str = ""
) -> str:
    """Write one, with a sentence on what it leaves out; "" where it has no rows."""
    made = [_row(f"{key}/{name}", head, heads, cells) for name, head, cells in rows]
    if not made:
        return ""
    right = {
        index
        for _, _, cells in rows
        for index, cell in enumerate(cells, 1)
        if cell.right
    }
    names = "".join(
        f'<th scope="col" role="columnheader"{_right(index in right)}>'
        f"{escape(head)}</th>"
        for index, head in enumerate(heads)
    )
    note = f'<p class="soft" data-k="{escape(key)}">{escape(more)}</p>' if more else ""
    return (
        f'<table role="table"><caption>{escape(caption)}</caption>'
        f'<thead role="rowgroup"><tr role="row">{names}</tr></thead>'
        f'<tbody role="rowgroup">{"".join(made)}</tbody></table>{note}'
    )


def _row(
    key: str, head: str | Cell, heads: Sequence[str], cells: Sequence[Cell]
) -> str:
    written = "".join(
        f'<td role="cell"{_layout(cell)} data-of="{escape(name)}">'
        f'<span data-k="{escape(key)}/{index}">{shown(cell)}</span></td>'
        for index, (name, cell) in enumerate(zip(heads[1:], cells, strict=True))
    )
    first = head if isinstance(head, Cell) else Cell(head)
    return (
        f'<tr role="row"><th scope="row" role="rowheader">{shown(first)}</th>'
        f"{written}</tr>"
    )


def shown(cell: Cell) -> str:
    """Return a cell's text, as a link or in the colour of its look."""
    text = escape(cell.text) or NONE
    if cell.href:
        text = f'<a href="{escape(cell.href)}">{text}</a>'
    return f'<span class="state {cell.look}">{text}</span>' if cell.look else text


def _layout(cell: Cell) -> str:
    if cell.whole:
        return ' class="whole"'
    return ' class="double"' if cell.look else _right(cell.right)


def _right(right: bool) -> str:  # noqa: FBT001
    return ' class="number"' if right else ""
