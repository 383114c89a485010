"""Handlers between a source's ops and a sink's format: drop, rename, mask, filter.

One module a handler, one registry; a handler is made for one table, as an encoder is.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol

from walstream import plugins
from walstream.config.handler import HandlerSettings
from walstream.op import ReplicationOp, Table
from walstream.records.handlers.columns import DropColumns, RenameColumns
from walstream.records.handlers.filter import Filter
from walstream.records.handlers.mask import Mask
from walstream.records.producer_record import ProducerRecord

__all__ = [
    "HANDLERS",
    "Handler",
    "MakeHandler",
    "Out",
    "Passthrough",
    "ProducerRecord",
    "handler_of",
]


Out = ReplicationOp | ProducerRecord


class Handler(Protocol):
    """Handles the ops of one table; made of that, and of what the sink says.

    A Transient error has the same op come again later, a HistoryError stops the sink
    at it; any other skips it.
    """

    def handle(self, op: ReplicationOp) -> Iterable[Out]:
        """Return what goes on in its place; nothing: it is skipped."""


MakeHandler = Callable[[Table, HandlerSettings], Handler]


class Passthrough:
    """Every op as it came."""

    def __init__(self, table: Table, _: HandlerSettings) -> None:
        self.table = table

    def handle(self, op: ReplicationOp) -> Iterator[Out]:
        yield op


HANDLERS: Final[dict[str, MakeHandler]] = {
    "passthrough": Passthrough,
    "drop_columns": DropColumns,
    "rename_columns": RenameColumns,
    "mask": Mask,
    "filter": Filter,
}


def handler_of(kind: str) -> MakeHandler:
    """Find a handler: one of these, or one that an installed package adds.

    Raises ConfigError where that cannot be loaded.
    """
    made: MakeHandler = HANDLERS.get(kind) or plugins.load(plugins.HANDLERS, kind)
    return made
