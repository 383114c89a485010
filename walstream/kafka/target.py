"""Target of one table's ops in a Kafka sink."""

from dataclasses import dataclass

from walstream.formats import RecordEncoder
from walstream.formats.strict import Encode
from walstream.kafka.ordered_producer import OrderedProducer
from walstream.kafka.topic import Topic
from walstream.op import LargeOp
from walstream.records.encoding import TableEncoding
from walstream.records.key import KeyRenderer
from walstream.records.large_op import LargeRecord, spelled
from walstream.telemetry.meter import TableMeter


@dataclass(slots=True, eq=False, init=False)
class Target:
    """Target of all ops of one table: routed and rendered once."""

    aim: TableEncoding
    topic: Topic | None  # None: not known yet
    key: KeyRenderer
    encode: Encode
    meter: TableMeter
    outbox: OrderedProducer
    keyless: bool  # are the keys only what decides the partition?
    records: RecordEncoder | None

    def __init__(
        self, aim: TableEncoding, topic: Topic | None, outbox: OrderedProducer
    ) -> None:
        self.aim = aim
        self.topic = topic
        self.key = aim.route.key.render
        self.encode = aim.encode
        self.meter = aim.meter
        self.outbox = outbox
        self.keyless = aim.route.key.null
        self.records = aim.records

    def large(self, op: LargeOp) -> tuple[bytes, LargeRecord]:
        """Return key and record of an op whose large values are not looked at yet."""
        key = self.key(spelled(op, self.aim.route.key.columns))
        written = self.encode(spelled(op, self.aim.others))
        return key, LargeRecord(written, op)
