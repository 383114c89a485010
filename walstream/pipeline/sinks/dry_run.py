"""The sinks `log` and `discard`: route and encode as the Kafka sink does, send nothing.

So a configuration can be tried without a broker: a table, handler or format that the
Kafka sink refuses is refused here too.
"""

from collections.abc import Mapping

import structlog

from walstream.lsn import show
from walstream.op import Kind, ReplicationOp, Table, halves
from walstream.pipeline.ledger import Transaction
from walstream.pipeline.ports import SinkTopic
from walstream.records.encoding import (
    MAX_TABLES,
    EncodingPlan,
    SinkRules,
    TableEncoding,
)
from walstream.records.named_topics import NamedTopics
from walstream.records.producer_record import ProducerRecord
from walstream.records.router import Router
from walstream.telemetry.fields import LSN, SINK, TABLE, TOPIC
from walstream.telemetry.tally import Tally

_log = structlog.get_logger()


class DrySink:
    """Sink that takes every op at once and has nothing in flight."""

    waiting = False
    outage = None
    handler_waits = False  # it has none
    in_flight = 0

    def __init__(
        self, rules: SinkRules, router: Router, *, says: bool, values: bool = False
    ) -> None:
        """With `says`, log one line for each op; with `values`, its record too."""
        self._rules = rules
        self._router = router
        self._aims = EncodingPlan(rules, router)
        self._named = NamedTopics(router, rules.max_named_topics)
        self._says = says
        self._values = values
        self._aimed: dict[Table, TableEncoding | None] = {}

    @property
    def name(self) -> str:
        return self._rules.name

    @property
    def tally(self) -> Tally:
        return self._aims.tally

    @property
    def topics(self) -> Mapping[str, SinkTopic]:
        return {}

    def ready(self) -> bool:
        return True

    def knows(self, table: Table) -> bool:
        self._router.topic(table.schema, table.name)
        return True

    def send(self, op: ReplicationOp, _: Transaction) -> bool:
        aim = self._aim(op.table)
        if aim is None:
            self._aims.drop(op.table)
            return True
        aim.meter.ops += 1
        if op.kind is Kind.TRUNCATE:
            if self._aims.sends_truncate(op, aim):
                key = aim.route.key.table_key
                self._say(op, aim.route.topic, key, aim.encode(op))
        elif op.key_changed and self._rules.split_key_updates:
            aim.meter.ops += 1  # of two numbers
            for half in halves(op):
                self._say_row(half, aim)
        else:
            self._say_row(op, aim)
        return True

    def _say_row(self, op: ReplicationOp, aim: TableEncoding) -> None:
        self._say(op, aim.route.topic, aim.route.key.render(op), aim.encode(op))

    def _aim(self, table: Table) -> TableEncoding | None:
        try:
            return self._aimed[table]
        except KeyError:
            if len(self._aimed) >= MAX_TABLES:
                self._aimed.clear()
            self._aimed[table] = aim = self._aims.of(table)
            if aim is not None:
                self._named.keep_out(aim.route.topic, table)
            return aim

    def put(self, record: ProducerRecord, op: ReplicationOp, _: Transaction) -> None:
        """Accept a record that a handler made of an op."""
        topic = record.topic
        if topic is None:
            topic = self._router.topic(op.table.schema, op.table.name)
        elif topic not in self._named:
            self._named.admit(topic, op)
        if topic is None:
            self._aims.drop(op.table)
        else:
            self._say(op, topic, record.key, record.value)

    def _say(
        self, op: ReplicationOp, topic: str, key: bytes | None, value: bytes | None
    ) -> None:
        if not self._says:
            return
        said: dict[str, object] = {
            SINK: self.name,
            TABLE: op.table.full_name,
            "kind": op.kind.value.lower(),
            LSN: show(op.lsn),
            "seq_id": op.seq_id,
            TOPIC: topic,
            "bytes": len(value or b""),
        }
        if self._values:
            for name, text in (("key", key), ("value", value)):
                said[name] = None if text is None else text.decode(errors="replace")
        _log.info("op", **said)

    def close(self) -> None:
        self._aims.tell()
