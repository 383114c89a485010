"""ReplicationOp -> bytes and back: one module a format, one registry."""

from collections.abc import Callable
from typing import Final, Protocol

from walstream.formats.op import OpEncoder
from walstream.op import ReplicationOp, Table


class Encoder(Protocol):
    """Encodes the ops of one table."""

    def encode(self, op: ReplicationOp) -> bytes: ...


ENCODERS: Final[dict[str, Callable[[Table], Encoder]]] = {"op": OpEncoder}
