"""The field `source` of an envelope, and that of a transaction; with their schemas."""

from typing import Final

from walstream.formats.debezium.connect import Schema, number, struct, text
from walstream.formats.debezium.json_text import json_text
from walstream.formats.debezium.options import CONNECTOR, DebeziumOptions
from walstream.lsn import Lsn
from walstream.op import EPOCH_S

_SNAPSHOTS: Final = (
    "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"
)
_INT64: Final = Schema("int64")
_SOME_INT64: Final = Schema("int64", optional=True)
_STRING: Final = text()
_SOME_STRING: Final = _STRING.as_optional()

SOURCE: Final = struct(
    "io.debezium.connector.postgresql.Source",
    ("version", _STRING),
    ("connector", _STRING),
    ("name", _STRING),
    ("ts_ms", _INT64),
    (
        "snapshot",
        text("io.debezium.data.Enum", allowed=_SNAPSHOTS)
        .as_optional()
        .with_default('"false"'),
    ),
    ("db", _STRING),
    ("sequence", _SOME_STRING),
    ("ts_us", _SOME_INT64),
    ("ts_ns", _SOME_INT64),
    ("schema", _STRING),
    ("table", _STRING),
    ("txId", _SOME_INT64),
    ("lsn", _SOME_INT64),
    ("xmin", _SOME_INT64),
    ("origin", _SOME_STRING),
    ("origin_lsn", _SOME_INT64),
)
TRANSACTION: Final = struct(
    "event.block",
    ("id", _STRING),
    ("total_order", _INT64),
    ("data_collection_order", _INT64),
).as_optional()
OP: Final = _STRING
TIMES: Final = (
    ("ts_ms", _SOME_INT64),
    ("ts_us", _SOME_INT64),
    ("ts_ns", _SOME_INT64),
)
TIME: Final = number("int64")


def unix_micros(commit_time: int) -> int:
    """Return PostgreSQL's microseconds since 2000 as those since 1970."""
    return commit_time + EPOCH_S * 1_000_000


class SourceBlock:
    """Writes the block of one table, in two heads that a transaction's rows share."""

    __slots__ = ("_snapshot", "_stream", "_table")

    def __init__(
        self, options: DebeziumOptions, schema: str, table: str, snapshot: str
    ) -> None:
        about = (
            f'{{"version":{json_text(options.version)},"connector":"{CONNECTOR}",'
            f'"name":{json_text(options.name)},"ts_ms":'
        )
        behind = f',"db":{json_text(options.database)},"sequence":"['
        self._stream = (about, f',"snapshot":"false"{behind}')
        self._snapshot = (about, f',"snapshot":"{snapshot}"{behind}')
        self._table = f'"schema":{json_text(schema)},"table":{json_text(table)},"txId":'

    def stream(self, commit_time: int, lsn: Lsn, xid: int | None) -> tuple[str, str]:
        r"""Return what stands before a row's LSN, the first and the second time.

        The first LSN of the sequence is that of the commit record: it orders the
        stream, and is the same in a replay.
        """
        head = f'{self._timed(self._stream, commit_time)}\\"{lsn}\\",\\"'
        rest = self._rest(commit_time)
        return head, f'{rest}{"null" if xid is None else xid},"lsn":'

    def snapshot(self, read_time: int, lsn: Lsn, *, whole: bool) -> str:
        """Return the block of a row that was read, up to its origin.

        `whole`: with its LSN; one that was read beside the stream has none.
        """
        head = f'{self._timed(self._snapshot, read_time)}null,\\"{lsn}'
        shown = str(lsn) if whole else "null"
        return f'{head}{self._rest(read_time)}null,"lsn":{shown},"xmin":null,'

    @staticmethod
    def _timed(parts: tuple[str, str], time: int) -> str:
        about, behind = parts
        return f"{about}{unix_micros(time) // 1000}{behind}"

    def _rest(self, time: int) -> str:
        micros = unix_micros(time)
        return f'\\"]","ts_us":{micros},"ts_ns":{micros}000,{self._table}'
