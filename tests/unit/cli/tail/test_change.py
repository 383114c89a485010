"""A record's time, and what it says."""

import pytest

from tests.support.oracles import vectors
from walstream.cli.tail.change import read
from walstream.cli.tail.content import ContentKind
from walstream.kafka.topic_reader import TopicRecord


def record(value: bytes | None, timestamp_ms: int | None = None) -> TopicRecord:
    return TopicRecord("t", 0, 0, b"k", value, [], timestamp_ms)


def test_record_and_content_stay_together() -> None:
    change = read(record(vectors.OPS["update"]))
    assert change.record == record(vectors.OPS["update"])
    assert change.content.kind is ContentKind.UPDATE


@pytest.mark.parametrize(
    ("timestamp_ms", "time"),
    [
        (1795242482019, "2026-11-21T06:28:02.019Z"),
        (0, "1970-01-01T00:00:00.000Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (None, None),
        (2**63 - 1, None),
        (-(2**63), None),
    ],
)
def test_time_is_rfc_3339_or_none(timestamp_ms: int | None, time: str | None) -> None:
    assert read(record(None, timestamp_ms)).time == time
