"""What `verbose` asks for: a line of the log for each record that goes to a sink."""

import structlog

from walstream.kafka.topic_reader import Record
from walstream.lsn import show
from walstream.sources.kafka.envelope import Named
from walstream.telemetry.fields import LSN, SINK, TABLE, TOPIC

_log = structlog.get_logger()


def say(sink: str, record: Record, named: Named) -> None:
    """Name a record by what it says of itself, and by where it was; no value."""
    position: dict[str, str | int] = {}
    if named.lsn is not None:
        position[LSN] = show(named.lsn)
    if named.seq_id is not None:
        position["seq_id"] = named.seq_id
    _log.info(
        "record" if record.value is not None else "tombstone",
        **{SINK: sink, TABLE: named.full_name, TOPIC: record.topic},
        **position,
        partition=record.partition,
        offset=record.offset,
    )
