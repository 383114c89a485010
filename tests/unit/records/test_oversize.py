"""What is left of a record that is too large: its name, its key, and no value."""

import json

from structlog.testing import capture_logs

from walstream.errors import RecordRefused
from walstream.op import Kind, ReplicationOp, Table
from walstream.records.oversize import TooLarge
from walstream.records.record_size import RECORD_OVERHEAD

OP = ReplicationOp(
    Kind.INSERT, Table("public", "t", ("id", "v"), (0,)), 24, 3, new=["1", "s3cret"]
)
LARGE = TooLarge(OP, b'["1"]', 5000, "public.t", 4000)


def test_the_document_names_the_op_and_its_key() -> None:
    assert json.loads(LARGE.document()) == {
        "table": "public.t",
        "op": "Insert",
        "lsn": 24,
        "seq_id": 3,
        "snapshot": False,
        "key": '["1"]',
        "topic": "public.t",
        "size": 5000,
        "limit": 4000,
    }
    assert LARGE.size_parked == len(LARGE.document()) + 5 + RECORD_OVERHEAD


def test_a_key_of_any_bytes_is_text() -> None:
    odd = TooLarge(OP, b"\xff", 5000, "public.t", 4000)
    assert json.loads(odd.document())["key"] == "\ufffd"


def test_a_refusal_names_what_would_cure_it() -> None:
    error = LARGE.refusal()
    assert isinstance(error, RecordRefused)
    assert "(0/18, 3) has 5000 bytes" in str(error)
    assert "max.message.bytes" in error.hint


def test_the_log_says_where_it_is_left() -> None:
    with capture_logs() as said:
        LARGE.tell("kafka", "parked")
    (line,) = said
    assert (line["sink"], line["topic"], line["lsn"]) == ("kafka", "parked", "0/18")
    assert "s3cret" not in str(line)
