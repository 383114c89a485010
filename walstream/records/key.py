"""Forms of a record's key: one function for each, by name; pure.

A key is made of a row's key columns: those of the new row, of a deleted one those of
the old. What has no such columns has a key of its own in each form.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, cast

import orjson

from walstream.errors import HistoryError, Repair
from walstream.formats.context import SourceOrigin
from walstream.formats.event import ACTIONS
from walstream.lsn import show
from walstream.op import Kind, ReplicationOp, Table
from walstream.row import NotSent

_dumps: Final = orjson.dumps
KeyRenderer = Callable[[ReplicationOp], bytes]


@dataclass(frozen=True, slots=True)
class KeyForm:
    """The keys of one table."""

    render: KeyRenderer
    table_key: bytes  # of ops without a row: Truncate
    columns: tuple[int, ...] = ()  # of a row, those that its key is made of
    around: tuple[bytes, bytes, bytes] = (b"", b"", b"")
    """What a key has before, between and behind texts that need no escape."""
    null: bool = False  # the record has none: `render` says what decides its partition


def _values(op: ReplicationOp) -> Sequence[Any]:
    """Return the row that a key is made of.

    Compiled, values of a Row are checked: a handler's may be of any type.
    """
    return cast("Sequence[Any]", op.new or op.old or ())


def _json(table: Table, indexes: tuple[int, ...], _: SourceOrigin) -> KeyForm:
    """`["1","x"]`: an array of the columns' texts."""
    table_key = orjson.dumps([table.full_name])
    if not indexes:
        return KeyForm(lambda _op: table_key, table_key)
    around = (b'["', b'","', b'"]')
    if len(indexes) == 1:
        index = indexes[0]

        def render_one(op: ReplicationOp) -> bytes:
            row = _values(op)
            try:
                return _dumps((row[index],))
            except TypeError:
                _check_sent(op, table, indexes)
                raise

        return KeyForm(render_one, table_key, indexes, around)

    def render(op: ReplicationOp) -> bytes:
        row = _values(op)
        try:
            return _dumps([row[index] for index in indexes])
        except TypeError:
            _check_sent(op, table, indexes)
            raise

    return KeyForm(render, table_key, indexes, around)


def _concat(table: Table, indexes: tuple[int, ...], _: SourceOrigin) -> KeyForm:
    """`1x`: the texts alone; two keys can collide."""
    table_key = table.full_name.encode()
    if not indexes:
        return KeyForm(lambda _op: table_key, table_key)
    return _joined(table, indexes, "", "")


def _tungsten(
    table: Table,
    indexes: tuple[int, ...],
    _: SourceOrigin,
    *,
    separator: str,
    named: bool,
) -> KeyForm:
    """`1_x` or `schema_table_1_x`, with or without the `_`; else the commit LSN."""
    if not indexes:
        return KeyForm(lambda op: b"%d" % op.lsn, table.full_name.encode())
    names = (table.schema, table.name, "") if named else ()
    return _joined(table, indexes, separator.join(names), separator)


def _joined(
    table: Table, indexes: tuple[int, ...], before: str, separator: str
) -> KeyForm:
    def render(op: ReplicationOp) -> bytes:
        row = _values(op)
        texts = [row[index] or "" for index in indexes]
        try:
            return (before + separator.join(cast("list[str]", texts))).encode()
        except TypeError:
            _check_sent(op, table, indexes)
            # a handler of one's own may make more of a value than text
            return (before + separator.join([str(text) for text in texts])).encode()

    around = (before.encode(), separator.encode(), b"")
    return KeyForm(render, table.full_name.encode(), indexes, around)


def _check_sent(op: ReplicationOp, table: Table, indexes: tuple[int, ...]) -> None:
    """Raise HistoryError where a key would be made of what PostgreSQL did not send."""
    row = _values(op)
    names = table.source_columns or table.columns
    lacking = [names[index] for index in indexes if isinstance(row[index], NotSent)]
    if not lacking:
        return
    cure = identify_full(table.schema, table.name)
    raise HistoryError(
        f"table {table.full_name!r}, {op.kind.value.lower()} at"
        f" ({show(op.lsn)}, {op.seq_id}): column {lacking} of its key was not sent,"
        " since it is not in the table's replica identity",
        hint="run the SQL, then start again with a backfill: what was written before "
        "the SQL can no longer be decoded",
        repair=Repair(sql=cure, then=THEN_RESET),
    )


def _event(table: Table, _: tuple[int, ...], origin: SourceOrigin) -> KeyForm:
    """`Host:Database:Table:Action`: one row's records go to several partitions."""
    start = f"{origin.host}:{origin.database}:{table.name}:"
    keys = {kind: f"{start}{action}".encode() for kind, action in ACTIONS.items()}
    return KeyForm(lambda op: keys[op.kind], keys[Kind.TRUNCATE])


KEY_FORMS: Final[
    dict[str, Callable[[Table, tuple[int, ...], SourceOrigin], KeyForm]]
] = {
    "json": _json,
    "concat": _concat,
    "event": _event,
    "pkey": partial(_tungsten, separator="", named=False),
    "pkeyus": partial(_tungsten, separator="_", named=False),
    "tspkey": partial(_tungsten, separator="", named=True),
    "tspkeyus": partial(_tungsten, separator="_", named=True),
}


THEN_RESET: Final = "walstream positions reset, then walstream run, unless it runs"


def identify_full(schema: str, name: str) -> str:
    """Write what has a table, or a leaf, log whole old rows."""
    names = (part.replace('"', '""') for part in (schema, name))
    return "ALTER TABLE {} REPLICA IDENTITY FULL;".format(
        ".".join(f'"{part}"' for part in names)
    )
