"""Heartbeats of a sink of Debezium's formats: records that say that it runs."""

from typing import Final

from walstream.formats.debezium import DebeziumOptions, HeartbeatRecords
from walstream.formats.debezium.names import heartbeat_topic
from walstream.op import Kind, ReplicationOp, Table, postgres_time
from walstream.records.producer_record import ProducerRecord, SchemaRecord
from walstream.telemetry import runtime

_TABLE: Final = Table("", "heartbeat", ())  # no table of any database


class Heartbeats:
    """Clock of a sink's heartbeats, and their records."""

    def __init__(self, options: DebeziumOptions, every_s: float) -> None:
        self._records = HeartbeatRecords(options)
        self._topic = heartbeat_topic(options.name)
        self._every_s = every_s
        self._due = 0.0

    def due(self) -> tuple[ProducerRecord, ReplicationOp] | None:
        """Return a record that is due, once, with an op in the place of its own."""
        now = runtime.monotonic()
        if now < self._due:
            return None
        self._due = now + self._every_s
        time = runtime.time()
        value = self._records.value(int(time * 1000))
        op = ReplicationOp(Kind.INSERT, _TABLE, 0, 0, commit_time=postgres_time(time))
        key, schemas = self._records.key, self._records.schemas
        return SchemaRecord(key, value, self._topic, schemas=schemas), op
