"""Records in Avro as walstream sends them; their schemas are in a test's registry."""

from typing import Final

from tests.support.loads.op_record import Feed
from tests.support.servers.faulty_registry import FaultyRegistry
from walstream.formats.debezium import DebeziumOptions, SinkTurn
from walstream.formats.encodings.avro import AvroEnvelope, AvroKey
from walstream.formats.encodings.wire import head
from walstream.op import Kind, ReplicationOp, Table
from walstream.row import Row

TABLE: Final = Table(
    "public",
    "item",
    ("id", "n", "amount"),
    (0,),
    (23, 20, 1700),
    modifiers=(-1, -1, 327_686),
)
_OPTIONS: Final = DebeziumOptions("shop", transaction_block=True)


class AvroFeed:
    """Writes ops of one table to one topic."""

    def __init__(
        self, bootstrap: str, topic: str, registry: FaultyRegistry, table: Table = TABLE
    ) -> None:
        self.feed = Feed(bootstrap, topic)
        turn = SinkTurn()
        self._turn, self.table = turn, table
        self.envelope = AvroEnvelope(table, _OPTIONS, turn)
        self.key = AvroKey(self.envelope.rows, _OPTIONS, table.key)
        for part, writer in (("key", self.key), ("value", self.envelope)):
            number = registry.register(f"{topic}-{part}", writer.schema_text)
            writer.head = head(number)

    def op(
        self, kind: Kind, lsn: int, seq_id: int = 0, old: Row = (), new: Row = ()
    ) -> ReplicationOp:
        rows = old or None, new or None
        return ReplicationOp(kind, self.table, lsn, seq_id, *rows, row_lsn=lsn, xid=7)

    def insert(self, lsn: int, *row: str | None, partition: int = 0) -> None:
        self.send(self.op(Kind.INSERT, lsn, new=list(row)), partition)

    def send(self, op: ReplicationOp, partition: int = 0) -> None:
        self._turn.begin(1)
        value = self.envelope.encode(op)
        self.feed.send_raw(value, partition, self.key.render(op) or b"")

    def flush(self) -> None:
        self.feed.flush()
