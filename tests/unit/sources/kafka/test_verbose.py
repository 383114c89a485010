"""A line a record, without values."""

import structlog

from walstream.kafka.topic_reader import Record
from walstream.sources.kafka.envelope import Named
from walstream.sources.kafka.verbose import say


def record(value: bytes | None) -> Record:
    return Record("up", 2, 7, b"secret", value, (), None)


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
