"""What a record says of itself."""

import pytest
import structlog

from walstream.errors import WalstreamError
from walstream.kafka.topic_reader import TopicRecord
from walstream.sources.kafka.envelope import READERS, Named, say, source_in, timestamp

DAY_MS = 86_400_000
NOW = 1_800_000_000_000


@pytest.mark.parametrize(
    ("form", "value", "named"),
    [
        (
            "op",
            '{"table_name":"T","col_names":[],"lsn":1,"seq_id":0,"op":{"Insert":[]}}',
            Named(("public", "T"), 1, 0),
        ),
        (
            "op",
            (
                '{"table_name":"T","col_names":[],"lsn":1,"seq_id":0,"op":"Truncate",'
                '"schema":"s","partitions":4}'
            ),
            Named(("s", "T"), 1, 0),
        ),
        (
            "event",
            (
                '{"Host":"h","Database":"d","Table":"T","Action":"delete",'
                '"WALPosition":7,"Timestamp":"2026-11-21T06:28:02Z","Columns":{}}'
            ),
            Named(("", "T"), 7),
        ),
    ],
)
def test_a_record_names_its_table_and_position(
    form: str, value: str, named: Named
) -> None:
    assert READERS[form](value.encode()) == named


@pytest.mark.parametrize("form", list(READERS))
def test_anything_else_is_refused(form: str) -> None:
    with pytest.raises(WalstreamError, match=f"not an {form} record"):
        READERS[form](b"{}")


def test_a_record_of_a_registrys_schema_is_refused_by_name() -> None:
    with pytest.raises(WalstreamError, match="id of a schema"):
        READERS["op"](b"\0\0\0\0\7rest")


def test_the_source_is_read_from_its_header() -> None:
    assert source_in([("a", b"x"), ("walstream-source", b"7/db/0")]) == "7/db/0"
    assert source_in([("walstream-source", None)]) is None
    assert source_in([]) is None


def test_a_time_passes_on_unless_kafka_would_delete_or_refuse_the_record() -> None:
    assert timestamp(NOW - DAY_MS, NOW, -1) == NOW - DAY_MS
    assert timestamp(NOW - DAY_MS, NOW, 7 * DAY_MS) == NOW - DAY_MS
    assert timestamp(NOW - 7 * DAY_MS, NOW, 7 * DAY_MS) == NOW - 7 * DAY_MS // 2
    assert timestamp(NOW + 1000, NOW, DAY_MS) == NOW + 1000
    assert timestamp(NOW + DAY_MS, NOW, DAY_MS) == NOW
    assert timestamp(None, NOW, DAY_MS) == 0


def record(value: bytes | None) -> TopicRecord:
    return TopicRecord("up", 2, 7, b"secret", value, (), None)


def test_a_record_is_named_and_no_value() -> None:
    with structlog.testing.capture_logs() as said:
        say("far", record(b"secret"), Named(("s", "t"), (1 << 32) + 255, 3))
    (line,) = said
    assert line["event"] == "record"
    assert (line["table"], line["lsn"], line["seq_id"]) == ("s.t", "1/FF", 3)
    assert (line["topic"], line["partition"], line["offset"]) == ("up", 2, 7)
    assert "secret" not in str(said)


def test_a_tombstone_has_no_position() -> None:
    with structlog.testing.capture_logs() as said:
        say("far", record(None), Named(("", "t")))
    (line,) = said
    assert (line["event"], line["table"]) == ("tombstone", "t")
    assert not {"lsn", "seq_id"} & line.keys()
