"""A record of any format -> one Change: its content and its place."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from walstream.cli.tail import parse
from walstream.cli.tail.content import Content
from walstream.kafka.topic_reader import TopicRecord

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Change:
    record: TopicRecord
    content: Content

    @property
    def time(self) -> str | None:
        """The record's time in RFC 3339; None where it has none that this can hold."""
        if self.record.timestamp_ms is None:
            return None
        try:
            time = _EPOCH + timedelta(milliseconds=self.record.timestamp_ms)
        except OverflowError:
            return None
        return f"{time:%Y-%m-%dT%H:%M:%S}.{time.microsecond // 1000:03}Z"


def read(record: TopicRecord, named: bytes | None = None) -> Change:
    """Understand a record, whatever it holds; never raises.

    `named` is its value with its schema's name, where that came from elsewhere.
    """
    headers = {name: text for name, text in record.headers if text is not None}
    value = record.value if named is None else named
    return Change(record, parse.read(value, record.key, headers))
