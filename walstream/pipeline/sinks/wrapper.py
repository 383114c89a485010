"""Wrappers of another sink, which forward what they do not change."""

from collections.abc import Mapping

import structlog

from walstream.lsn import Lsn, show
from walstream.op import MessageOp, ReplicationOp, Table
from walstream.pipeline.ledger import Transaction
from walstream.pipeline.outage import Outage
from walstream.pipeline.ports import (
    NamedSink,
    SinkTopic,
    flush,
    proven,
    send_message,
    tell_delivered,
)
from walstream.records.large_op import takes_large
from walstream.records.producer_record import ProducerRecord
from walstream.telemetry.fields import LSN, TABLE
from walstream.telemetry.tally import Tally


class FrontSink:
    """Sink that forwards everything to another one."""

    def __init__(self, sink: NamedSink) -> None:
        self._sink = sink

    @property
    def name(self) -> str:
        return self._sink.name

    @property
    def takes_large(self) -> bool:
        return takes_large(self._sink)

    @property
    def tally(self) -> Tally:
        return self._sink.tally

    @property
    def topics(self) -> Mapping[str, SinkTopic]:
        return self._sink.topics

    @property
    def waiting(self) -> bool:
        """Return whether it waits for its target."""
        return self._sink.waiting

    @property
    def handler_waits(self) -> bool:
        """Return whether one of its handlers cannot go on."""
        return self._sink.handler_waits

    @property
    def outage(self) -> Outage | None:
        return self._sink.outage

    @property
    def in_flight(self) -> int:
        return self._sink.in_flight

    def knows(self, table: Table) -> bool:
        return self._sink.knows(table)

    def ready(self) -> bool:
        return self._sink.ready()

    def send(self, op: ReplicationOp, transaction: Transaction) -> bool:
        return self._sink.send(op, transaction)

    def send_message(self, message: MessageOp, transaction: Transaction) -> bool:
        return send_message(self._sink, message, transaction)

    def put(
        self, record: ProducerRecord, op: ReplicationOp, transaction: Transaction
    ) -> None:
        """Send an encoded record."""
        self._sink.put(record, op, transaction)

    def flush(self) -> None:
        flush(self._sink)

    def resolve(self, lsn: Lsn) -> None:
        """Pass on what a sink is told that says how far it is."""
        tell_delivered(self._sink, lsn)

    def proven(self, resume: Lsn) -> Lsn:
        return proven(self._sink, resume)

    def close(self) -> None:
        self._sink.close()


_log = structlog.get_logger()


class VerboseSink(FrontSink):
    """Sink that logs each op, without values, and forwards it."""

    def __init__(self, sink: NamedSink, said: Mapping[str, str]) -> None:
        """`said` is in each line: the source and sink of the op."""
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
