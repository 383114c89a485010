"""What `verbose` asks for: a line of the log for each op that goes to a sink."""

from collections.abc import Mapping
from typing import Any

import structlog

from walstream.ledger import Transaction
from walstream.lsn import show
from walstream.metrics import LSN, TABLE
from walstream.op import ReplicationOp, Table
from walstream.ports import NamedSink
from walstream.tally import Tally

_log = structlog.get_logger()


class VerboseSink:
    """Stands in front of another sink; says no value of any row."""

    def __init__(self, sink: NamedSink, said: Mapping[str, str]) -> None:
        """`said` stands in each line: whose op it is."""
        self._sink = sink
        self._said = dict(said)

    @property
    def name(self) -> str:
        return self._sink.name

    @property
    def tally(self) -> Tally:
        return self._sink.tally

    @property
    def topics(self) -> Mapping[str, Any]:
        return self._sink.topics

    @property
    def waiting(self) -> bool:
        return self._sink.waiting

    @property
    def in_flight(self) -> int:
        return self._sink.in_flight

    def knows(self, table: Table) -> bool:
        return self._sink.knows(table)

    def ready(self) -> bool:
        return self._sink.ready()

    def send(self, op: ReplicationOp, transaction: Transaction) -> bool:
        _log.info(
            "op",
            **self._said,
            **{TABLE: op.table.full_name, LSN: show(op.lsn)},
            kind=op.kind.value.lower(),
            seq_id=op.seq_id,
        )
        return self._sink.send(op, transaction)

    def put(
        self,
        key: bytes,
        value: bytes,
        op: ReplicationOp,
        transaction: Transaction,
    ) -> None:
        self._sink.put(key, value, op, transaction)

    def close(self) -> None:
        self._sink.close()
