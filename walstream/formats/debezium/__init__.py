"""The formats `debezium` and `debezium_row`: the records of Debezium 3.5.

An encoder is of one table: `EnvelopeEncoder` or `UnwrappedEncoder`, with `DebeziumKey`
for its keys; the encoders of a sink share one `Turn`. `MessageEncoder`,
`TransactionRecords` and `HeartbeatRecords` write what is no change of a row.
"""

from walstream.formats.debezium.columns import TableColumns
from walstream.formats.debezium.envelope import BACKFILL, BESIDE, EnvelopeEncoder
from walstream.formats.debezium.key import DebeziumKey
from walstream.formats.debezium.message import MessageEncoder
from walstream.formats.debezium.options import DebeziumOptions
from walstream.formats.debezium.row import UnwrappedEncoder
from walstream.formats.debezium.transaction import HeartbeatRecords, TransactionRecords
from walstream.formats.debezium.turn import Turn

__all__ = [
    "BACKFILL",
    "BESIDE",
    "DebeziumKey",
    "DebeziumOptions",
    "EnvelopeEncoder",
    "HeartbeatRecords",
    "MessageEncoder",
    "TableColumns",
    "TransactionRecords",
    "Turn",
    "UnwrappedEncoder",
]
