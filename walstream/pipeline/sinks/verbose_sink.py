"""What `verbose` asks for: a line of the log for each op that goes to a sink."""

from collections.abc import Mapping

import structlog

from walstream.lsn import show
from walstream.op import ReplicationOp
from walstream.pipeline.ledger import Transaction
from walstream.pipeline.ports import NamedSink
from walstream.pipeline.sinks.forwarding import FrontSink
from walstream.telemetry.fields import LSN, TABLE

_log = structlog.get_logger()


class VerboseSink(FrontSink):
    """Stands in front of another sink; says no value of any row."""

    def __init__(self, sink: NamedSink, said: Mapping[str, str]) -> None:
        """`said` stands in each line: whose op it is."""
        super().__init__(sink)
        self._said = dict(said)

    def send(self, op: ReplicationOp, transaction: Transaction) -> bool:
        _log.info(
            "op",
            **self._said,
            **{TABLE: op.table.full_name, LSN: show(op.lsn)},
            kind=op.kind.value.lower(),
            seq_id=op.seq_id,
        )
        return super().send(op, transaction)
