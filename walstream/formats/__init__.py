"""ReplicationOp -> bytes and back: one module a format, one registry."""

from collections.abc import Callable, Collection
from typing import ClassVar, Final, Protocol, runtime_checkable

from walstream import plugins
from walstream.formats.context import Context
from walstream.formats.event import EventEncoder
from walstream.formats.op import OpEncoder
from walstream.formats.tungsten import TungstenEncoder
from walstream.lsn import Lsn
from walstream.op import ReplicationOp, Table

__all__ = [
    "ENCODERS",
    "Context",
    "Encoder",
    "LineEncoder",
    "MakeEncoder",
    "encoder_of",
    "texts_of",
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


MakeEncoder = Callable[[Table, Context], Encoder]
ENCODERS: Final[dict[str, MakeEncoder]] = {
    "op": lambda table, _: OpEncoder(table),
    "event": EventEncoder,
    "tungsten": TungstenEncoder,
}


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
