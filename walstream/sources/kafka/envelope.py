"""Envelope of a record, as far as relaying needs it: pure."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import structlog

from walstream.errors import WalstreamError
from walstream.formats import event, op
from walstream.formats.encodings.wire import schema_id
from walstream.kafka.topic_reader import TopicRecord
from walstream.lsn import show
from walstream.sources.kafka.offset_metadata import OffsetMetadata
from walstream.telemetry.fields import LSN, SINK, TABLE, TOPIC

SOURCE_HEADER: Final = "walstream-source"
_AHEAD_MS: Final = 30 * 60 * 1000  # half of what brokers allow by default

Table = tuple[str, str]
"""Schema and name; the schema is "" where the format names none."""

Header = tuple[str, bytes | None]


class Named(NamedTuple):
    """Identity of a record; None: its format has none, or it is a tombstone."""

    table: Table
    lsn: int | None = None
    seq_id: int | None = None

    @property
    def full_name(self) -> str:
        return ".".join(filter(None, self.table))


def _of_op(value: bytes) -> Named:
    if schema_id(value) is not None:
        raise WalstreamError("it has the id of a schema, and ops are relayed in JSON")
    found = op.decode(value)
    return Named((found.table.schema, found.table.name), found.lsn, found.seq_id)


def _of_event(value: bytes) -> Named:
    found = event.decode(value)
    return Named(("", found.table), found.row_lsn)


READERS: Final[Mapping[str, Callable[[bytes], Named]]] = {
    "op": _of_op,
    "event": _of_event,
}
"""By format: name what a value is of; raise WalstreamError for anything else."""


def source_in(headers: Sequence[Header]) -> str | None:
    """Find where a producer said that its records come from."""
    for name, text in headers:
        if name == SOURCE_HEADER and text is not None:
            return text.decode(errors="replace")
    return None


def noted(
    note: OffsetMetadata, headers: Sequence[Header], table: Table
) -> OffsetMetadata:
    """Note what a record says, where it says something new."""
    if headers and (source := source_in(headers)) is not None:
        note = note._replace(source=source)
    return note if note.table == table else note._replace(table=table)


def timestamp(given_ms: int | None, now_ms: int, retention_ms: int) -> int:
    """Return the time as it came, unless Kafka would delete or refuse the record.

    One as old as the topic's retention is gone before it is read, one too far ahead
    fails its whole batch. 0: the record has none.
    """
    if given_ms is None:
        return 0
    if given_ms > now_ms + _AHEAD_MS:
        return now_ms
    if retention_ms > 0:
        return max(given_ms, now_ms - retention_ms // 2)
    return given_ms


_log = structlog.get_logger()


def say(sink: str, record: TopicRecord, named: Named) -> None:
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
