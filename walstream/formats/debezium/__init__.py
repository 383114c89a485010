"""The formats `debezium` and `debezium_row`: the records of Debezium 3.5.

An encoder is of one table: `EnvelopeEncoder` or `UnwrappedEncoder`, with `DebeziumKey`
for its keys; the encoders of a sink share one `SinkTurn`. `MessageEncoder`,
`TransactionRecords` and `HeartbeatRecords` write the other records.
"""

from walstream.formats.debezium.columns import TableColumns
from walstream.formats.debezium.envelope import BACKFILL, BESIDE, EnvelopeEncoder
from walstream.formats.debezium.key import DebeziumKey
from walstream.formats.debezium.message import MessageEncoder
from walstream.formats.debezium.options import DebeziumOptions
from walstream.formats.debezium.record import DebeziumRecords, DebeziumRowRecords
from walstream.formats.debezium.row import UnwrappedEncoder
from walstream.formats.debezium.sink_turn import SinkTurn
from walstream.formats.debezium.transaction import HeartbeatRecords, TransactionRecords

__all__ = [
    "BACKFILL",
    "BESIDE",
    "DebeziumKey",
    "DebeziumOptions",
    "DebeziumRecords",
    "DebeziumRowRecords",
    "EnvelopeEncoder",
    "HeartbeatRecords",
    "MessageEncoder",
    "SinkTurn",
    "TableColumns",
    "TransactionRecords",
    "UnwrappedEncoder",
]
