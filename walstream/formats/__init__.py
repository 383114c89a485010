"""ReplicationOp -> bytes and back: one module a format, one registry."""

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, ClassVar, Final, Protocol, runtime_checkable

from walstream import plugins
from walstream.formats.context import Context
from walstream.formats.event import EventEncoder
from walstream.formats.op import OpEncoder
from walstream.formats.tungsten import TungstenEncoder
from walstream.lsn import Lsn
from walstream.op import ReplicationOp, Table
from walstream.telemetry import runtime

if TYPE_CHECKING:
    from walstream.formats.debezium import DebeziumOptions, SinkTurn

__all__ = [
    "DEBEZIUM",
    "ENCODERS",
    "Context",
    "Encoder",
    "LineEncoder",
    "MakeEncoder",
    "RecordEncoder",
    "debezium_parts",
    "encoder_of",
    "texts_of",
    "wants_facts",
]


class Encoder(Protocol):
    """Encodes the ops of one table; made of that, and of what the sink says."""

    truncates: ClassVar[bool]  # has the format a form for a Truncate?

    def encode(self, op: ReplicationOp) -> bytes: ...


@runtime_checkable
class LineEncoder(Encoder, Protocol):
    """Renders COPY text too, most of it without a look at any value."""

    def encode_lines(self, block: bytes, lsn: Lsn, seq_id: int) -> list[bytes] | None:
        """None where COPY or JSON writes a value with a backslash, but for a null."""


class RowKey(Protocol):
    """Writes the keys of one table; None: a record has none."""

    def render(self, op: ReplicationOp) -> bytes | None: ...

    def change_headers(
        self, update: ReplicationOp
    ) -> tuple[tuple[str, bytes], tuple[str, bytes]]:
        """Return the headers of an update's two halves, where it moves the key."""


@runtime_checkable
class RecordEncoder(Encoder, Protocol):
    """Encodes more of a record than its value: key, tombstones, headers."""

    def key(self, indexes: Sequence[int]) -> RowKey: ...

    def values(self, op: ReplicationOp) -> list[bytes | None]:
        """Return the values of an op's records, in order; None is a tombstone."""

    def headers(self, op: ReplicationOp) -> list[tuple[str, str | bytes | None]]: ...


MakeEncoder = Callable[[Table, Context], Encoder]


def _debezium(table: Table, context: Context) -> Encoder:
    return _debezium_records(table, context, unwrapped=False)


def _debezium_row(table: Table, context: Context) -> Encoder:
    return _debezium_records(table, context, unwrapped=True)


def _debezium_records(table: Table, context: Context, *, unwrapped: bool) -> Encoder:
    # few processes write it, and its modules are many
    from walstream.formats.debezium import (  # noqa: PLC0415
        DebeziumRecords,
        DebeziumRowRecords,
    )

    options, turn = debezium_parts(context)
    made = DebeziumRowRecords if unwrapped else DebeziumRecords
    return made(table, options, turn, unwrapped=unwrapped, backfill=context.backfill)


def debezium_parts(context: Context) -> "tuple[DebeziumOptions, SinkTurn]":
    """Return what encoders of these formats are made of, beside their table."""
    from walstream.formats.debezium import DebeziumOptions, SinkTurn  # noqa: PLC0415

    turn = context.turn
    if turn is None:
        turn = SinkTurn()
        turn.begin(runtime.time_ns())
    return context.debezium or DebeziumOptions(context.origin.slot), turn


ENCODERS: Final[dict[str, MakeEncoder]] = {
    "op": lambda table, _: OpEncoder(table),
    "event": EventEncoder,
    "tungsten": TungstenEncoder,
    "debezium": _debezium,
    "debezium_row": _debezium_row,
}
DEBEZIUM: Final = frozenset({"debezium", "debezium_row"})
"""Formats whose records have keys, headers and tombstones of their own."""


def wants_facts(name: str, encoding: str = "json") -> bool:
    """Return whether a format's encoders read `Table.facts`."""
    return name in DEBEZIUM or encoding != "json"


def texts_of(encoder: Encoder) -> Collection[int]:
    """Name the columns that it writes as JSON texts, whatever they hold.

    There it may be given a short text in the place of a large one. A format that says
    nothing of `texts` is never given any.
    """
    found: Collection[int] = getattr(encoder, "texts", ())
    return found


def encoder_of(name: str) -> MakeEncoder:
    """Find a format: one of these, or one that an installed package adds.

    Raises ConfigError where that cannot be loaded.
    """
    made: MakeEncoder = ENCODERS.get(name) or plugins.load(plugins.FORMATS, name)
    return made
