"""Encoding of ops as records, for any sink.

What is the same for all ops of a table is made once, with the table.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import structlog

from walstream.errors import HistoryError
from walstream.formats import RecordEncoder, texts_of
from walstream.formats.context import Context
from walstream.formats.encodings import encoder_in, parts_of
from walstream.formats.encodings.subject import FramedPart
from walstream.formats.strict import Encode, whole_rows
from walstream.lsn import show
from walstream.op import ReplicationOp, Table
from walstream.records.message_router import MessageRules
from walstream.records.named_topics import MAX_NAMED_TOPICS
from walstream.records.record_key import with_own_key
from walstream.records.router import Route, Router
from walstream.telemetry.fields import SINK, TABLE
from walstream.telemetry.meter import SinkMeter, TableMeter
from walstream.telemetry.tally import Tally

MAX_TABLES: Final = 65_536
FROZEN_AFTER_MS: Final = 30_000  # half of a server's default wal_sender_timeout
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class TransactionInfo:
    """Place and form in which a sink says how many rows a transaction has."""

    topic: str = ""  # "": in the records themselves
    max_rows: int = 10_000  # of a transaction whose records say it
    debezium: bool = False  # its BEGIN and END, not one record
    resolved_s: float = 0.0  # between records that say how far all is delivered


@dataclass(frozen=True, slots=True)
class SinkRules:
    """Settings of a sink."""

    name: str
    format: str
    partitioner: str
    on_truncate: str  # send | skip | stop
    split_key_updates: bool
    source_header: bytes  # system_identifier/database/epoch
    context: Context
    strict: bool = False  # an old row that is not whole is an error
    parking: str = ""  # the topic of what is too large for its own; "": that stops
    tombstones: bool = False  # a null value follows each Delete
    meter: SinkMeter = field(default_factory=SinkMeter)
    reserved: frozenset[str] = frozenset()  # topics that no record may name
    txinfo: TransactionInfo | None = None
    messages: MessageRules | None = None
    heartbeat_s: float = 0.0  # between records in Debezium's heartbeat topic
    # a process that stood still for longer may have lost its slot to another one
    frozen_after_ms: int = FROZEN_AFTER_MS
    max_named_topics: int = MAX_NAMED_TOPICS  # that records may name themselves


@dataclass(frozen=True, slots=True)
class TableEncoding:
    """Target and encoder of one table's ops."""

    route: Route
    encode: Encode
    truncates: bool  # has the format a form for a Truncate?
    others: frozenset[int] = frozenset()  # columns that are no JSON texts in it
    meter: TableMeter = field(default_factory=lambda: TableMeter(""))
    records: RecordEncoder | None = None  # where a record is more than key and value
    parts: Sequence[FramedPart] = ()  # whose schemas a registry has


class EncodingPlan:
    """Routes tables, and counts what goes nowhere."""

    def __init__(self, rules: SinkRules, router: Router) -> None:
        self._rules = rules
        self._router = router
        self._make_encoder = encoder_in(rules.context.encoding, rules.format)
        self.tally = Tally()

    def of(self, table: Table) -> TableEncoding | None:
        """Return the encoding of a table's ops; None: they have no topic."""
        context = self._rules.context
        route = self._router.route(table, context.origin)
        if route is None:
            return None
        encoder = self._make_encoder(table, context)
        route = with_own_key(route, encoder, table)
        encode = whole_rows(encoder.encode) if self._rules.strict else encoder.encode
        meter = self._rules.meter.tables.of(table.full_name)
        others = frozenset(range(len(table.columns))).difference(texts_of(encoder))
        records = encoder if isinstance(encoder, RecordEncoder) else None
        parts = parts_of(encoder, route.topic, route.key.columns, context)
        return TableEncoding(
            route, encode, encoder.truncates, others, meter, records, parts
        )

    def sends_truncate(self, op: ReplicationOp, aim: TableEncoding) -> bool:
        """Return whether a Truncate is sent; raise HistoryError if it stops the sink.

        A backfill's Truncate is not a change in the source: the table's rows follow.
        """
        rule = "send" if op.snapshot else self._rules.on_truncate
        if rule == "stop":
            raise HistoryError(
                f"table {op.table.full_name!r} was truncated at {show(op.lsn)}, and"
                " on_truncate is 'stop'",
                hint="set on_truncate to send or skip, then: walstream run",
            )
        if rule == "send" and not aim.truncates:
            what = (
                f"the format {self._rules.format} has no record for a TRUNCATE: it is"
            )
            self.drop(op.table, what)
            return False
        return rule == "send"

    def drop(self, table: Table, what: str = "table has no topic: its ops are") -> None:
        """Count an op that goes nowhere; say so once for each table."""
        dropped = self.tally.dropped
        dropped[table.full_name] += 1
        if dropped[table.full_name] == 1:
            _log.warning(
                f"{what} dropped and counted",
                **{TABLE: table.full_name, SINK: self._rules.name},
            )

    def tell(self) -> None:
        """Log how many were dropped, when all is over."""
        for table, count in self.tally.dropped.items():
            _log.info(
                "ops were dropped",
                **{TABLE: table, SINK: self._rules.name},
                count=count,
            )
