r"""Change -> lines for a person: green inserts, red deletes, what an update changed.

    2026-11-21T06:28:02.019Z 0/1B01A60 #1 update public.orders ["17"] state: new → paid

Nothing in a record can drive the terminal. A value stands as it is, or in quotes where
it could be misread (`"null"` is a text, NULL is none; `\n` counts within quotes only).
"""

from collections.abc import Iterator
from typing import Final

from walstream.cli.tail.change import Change
from walstream.cli.tail.content import (
    Columns,
    Content,
    ContentKind,
    Format,
    Json,
    Value,
)
from walstream.cli.tail.escape import as_text
from walstream.cli.tail.excerpt import LONGEST, excerpt, first_difference
from walstream.cli.tail.layout import Line, Piece, lay_out, plain
from walstream.lsn import show
from walstream.row import NotSent
from walstream.telemetry.terminal import escape

_STYLES: Final = {
    ContentKind.INSERT: "green",
    ContentKind.UPDATE: "yellow",
    ContentKind.DELETE: "red",
    ContentKind.TRUNCATE: "bold red",
    ContentKind.TOMBSTONE: "magenta",
    ContentKind.TRANSACTION: "cyan",
    ContentKind.MESSAGE: "cyan",
    ContentKind.HEARTBEAT: "dim",
    None: "magenta",
}
_WITHOUT_ROWS: Final = {
    *(ContentKind.TRUNCATE, ContentKind.TRANSACTION),
    *(ContentKind.MESSAGE, ContentKind.HEARTBEAT),
}
_OLD: Final = "red"
_NEW: Final = "green"
_PLACE: Final = "cyan"
_DIM: Final = "dim"
_NULL: Final = Piece("NULL", "dim italic")
_COMMA: Final = Piece(",", _DIM)
_BECOMES: Final = Piece(" → ", _DIM)
_SAME: Final = Piece("nothing changed", _DIM)


def lines(change: Change, width: int | None, *, full: bool = False) -> list[Line]:
    """Render within so many columns; None: all on one line.

    `full` shortens nothing, and adds what else the record holds.
    """
    return lay_out(_items(change, None if full else LONGEST), width)


def _items(change: Change, longest: int | None) -> Iterator[Line]:
    """Yield what is kept whole on a line where it fits."""
    for piece in _head(change, longest):
        yield [piece]
    columns = list(_columns(change, longest))
    if longest is None:
        columns += _rest(change.content)
    for column in columns[:-1]:
        yield [*column, _COMMA]
    yield from columns[-1:]


def _head(change: Change, longest: int | None) -> Iterator[Piece]:
    record, content = change.record, change.content
    yield Piece(change.time or "(no time)", _DIM)
    if content.lsn is not None:
        yield Piece(show(content.lsn), _PLACE)
    if content.seq_id is not None:
        yield Piece(f"#{content.seq_id}", _PLACE)
    if content.lsn is None or longest is None:
        place = f"{escape(record.topic)}[{record.partition}]@{record.offset}"
        yield Piece(place, _DIM)
    yield Piece(content.kind or content.format or "", _STYLES[content.kind])
    if content.snapshot:
        yield Piece("snapshot", _DIM)
    if content.full_table is not None:
        yield Piece(_cut(content.full_table, longest), "bold")
    if record.key is not None:
        yield Piece(_cut(as_text(record.key), longest))


def _cut(name: str, longest: int | None) -> str:
    return plain(excerpt(name, longest, quotable=False))


def _columns(change: Change, longest: int | None) -> Iterator[Line]:
    content = change.content
    style = _STYLES[content.kind]
    if content.format in {Format.TEXT, Format.BYTES}:
        text = as_text(change.record.value or b"")
        quotable = content.format is Format.TEXT  # bytes are spelt out already
        yield excerpt(text, longest, style=style, quotable=quotable)
    elif content.kind is ContentKind.UPDATE and content.old is not None:
        yield from _difference(content.old, content.new or {}, longest)
    elif content.kind in _WITHOUT_ROWS:
        yield from _named(content.more, longest, style)
    else:
        row = content.old if content.kind is ContentKind.DELETE else content.new
        yield from _named(row or {}, longest, style)
        yield from _absent(row or {}, longest)


def _named(columns: Columns, longest: int | None, style: str) -> Iterator[Line]:
    for name, value in columns.items():
        if not isinstance(value, NotSent):
            yield [_name(name, longest), *_value(value, longest, style)]


def _absent(row: Columns, longest: int | None) -> Iterator[Line]:
    """Name what was not sent: neither NULL nor empty."""
    names = [
        _cut(name, longest) for name, value in row.items() if isinstance(value, NotSent)
    ]
    if names:
        yield [Piece(f"(absent: {', '.join(names)})", _DIM)]


def _difference(old: Columns, new: Columns, longest: int | None) -> Iterator[Line]:
    """Yield what changed; where the old value was not sent, nobody knows."""
    changed = False
    for name, value in new.items():
        before = old.get(name)
        if isinstance(value, NotSent) or value == before:
            continue
        changed = True
        column = [_name(name, longest)]
        start = 0
        if not isinstance(before, NotSent):
            if longest is not None:
                start = first_difference(_plain(before), _plain(value), longest)
            column += [*_value(before, longest, _OLD, start), _BECOMES]
        yield [*column, *_value(value, longest, _NEW, start)]
    if not changed:
        yield [_SAME]
    yield from _absent(new, longest)


def _name(name: str, longest: int | None) -> Piece:
    return Piece(f"{_cut(name, longest)}: ")


def _value(value: Value, longest: int | None, style: str, start: int = 0) -> Line:
    if value is None:
        return [_NULL]
    quotable = not isinstance(value, Json)
    return excerpt(_plain(value), longest, style=style, start=start, quotable=quotable)


def _plain(value: Value) -> str:
    if isinstance(value, Json):
        return value.text
    return value if isinstance(value, str) else ""


def _rest(content: Content) -> Iterator[Line]:
    """Yield in brackets what only its format has."""
    if content.kind in _WITHOUT_ROWS:  # shown already
        return
    rest = list(_named(content.more, None, _DIM))
    for number, item in enumerate(rest):
        before = [Piece("(", _DIM)] if number == 0 else []
        after = [Piece(")", _DIM)] if number == len(rest) - 1 else []
        yield [*before, *item, *after]
