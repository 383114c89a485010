"""Records of the transaction topic, BEGIN and END; and those of the heartbeat topic."""

from typing import Final

from walstream.formats.debezium.connect import Schema, array, struct, text
from walstream.formats.debezium.json_text import json_text
from walstream.formats.debezium.names import schema_name
from walstream.formats.debezium.options import DebeziumOptions
from walstream.formats.debezium.source_block import TIME, unix_micros
from walstream.formats.txinfo import RowCounts
from walstream.lsn import Lsn

Record = tuple[bytes, bytes]
_COMMON: Final = "io.debezium.connector.common."


class TransactionRecords:
    """Writes key and value of BEGIN and END."""

    def __init__(self, options: DebeziumOptions) -> None:
        key = _named("TransactionMetadataKey", options, ("id", text()))
        collection = struct(
            "event.collection", ("data_collection", text()), ("event_count", TIME)
        )
        value = _named(
            "TransactionMetadataValue",
            options,
            ("status", text()),
            ("id", text()),
            ("event_count", TIME.as_optional()),
            ("data_collections", array(collection.as_optional()).as_optional()),
            ("ts_ms", TIME),
        )
        self.schemas = key, value
        self._key = _around(key, options)
        self._value = _around(value, options)

    def begin(self, xid: int | None, first: Lsn, commit_time: int) -> Record:
        """Write the one that precedes the rows; `first` is the LSN of their first."""
        body = '"event_count":null,"data_collections":null'
        return self._record("BEGIN", f"{xid}:{first}", body, commit_time)

    def end(
        self,
        xid: int | None,
        lsns: tuple[Lsn, Lsn],
        commit_time: int,
        counts: RowCounts,
    ) -> Record:
        """Write the one that follows them.

        `lsns` are those of the commit record, and of the byte behind it.
        """
        tables = [
            f'{{"data_collection":{json_text(name)},"event_count":{count}}}'
            for name, count in counts.tables.items()
        ]
        body = f'"event_count":{counts.rows},"data_collections":[{",".join(tables)}]'
        return self._record("END", f"{xid}:{lsns[1]}", body, commit_time)

    def _record(self, status: str, name: str, body: str, commit_time: int) -> Record:
        millis = unix_micros(commit_time) // 1000
        value = f'{{"status":"{status}","id":"{name}",{body},"ts_ms":{millis}}}'
        return _within(self._key, f'{{"id":"{name}"}}'), _within(self._value, value)


class HeartbeatRecords:
    """Writes key and value of a heartbeat."""

    def __init__(self, options: DebeziumOptions) -> None:
        key = _named("ServerNameKey", options, ("serverName", text()))
        value = _named("Heartbeat", options, ("ts_ms", TIME))
        self.schemas = key, value
        self._value = _around(value, options)
        self.key = _within(
            _around(key, options), f'{{"serverName":{json_text(options.name)}}}'
        )

    def value(self, millis: int) -> bytes:
        """Write one of that time, milliseconds since 1970."""
        return _within(self._value, f'{{"ts_ms":{millis}}}')


def _named(name: str, options: DebeziumOptions, *fields: tuple[str, Schema]) -> Schema:
    return struct(schema_name(f"{_COMMON}{name}", options.adjust), *fields)


def _around(schema: Schema, options: DebeziumOptions) -> tuple[str, str]:
    if not options.schemas:
        return "", ""
    return f'{{"schema":{schema.json()},"payload":', "}"


def _within(around: tuple[str, str], payload: str) -> bytes:
    return f"{around[0]}{payload}{around[1]}".encode()
