"""The records of messages, and what becomes of one that can have none."""

from typing import Any

from structlog.testing import capture_logs

from walstream.op import Kind, MessageOp
from walstream.records.message_records import FUNCTION, MessageRecords, stand_in
from walstream.records.message_router import MessageRouter, MessageRules
from walstream.records.producer_record import ProducerRecord
from walstream.records.router import topic_part
from walstream.telemetry.tally import Tally


def records(tally: Tally | None = None, **rules: Any) -> MessageRecords:
    told = {"prefixes": ("*",), "topic": "{prefix}", **rules}
    router = MessageRouter(MessageRules(**told), topic_part)
    return MessageRecords("k", router, Tally() if tally is None else tally)


def message(prefix: str = "p", xid: int | None = 7, content: bytes = b"c") -> MessageOp:
    return MessageOp(prefix, content, 90, 80, xid, 5)


def test_the_content_is_the_value_and_headers_say_the_rest() -> None:
    found = records(key="/id").made(message(content=b'{"id":"x"}'))
    assert found == ProducerRecord(
        b"x",
        b'{"id":"x"}',
        "p",
        [("prefix", b"p"), ("lsn", b"80"), ("xid", b"7")],
    )


def test_one_outside_of_a_transaction_has_no_xid() -> None:
    found = records().made(message(xid=None))
    assert found is not None
    assert [name for name, _ in found.headers] == ["prefix", "lsn"]
    assert found.key is None


def test_one_that_is_not_wanted_is_none() -> None:
    assert records(prefixes=("a",)).made(message("b")) is None


def test_one_without_a_topic_is_counted_and_said_once_a_minute() -> None:
    tally = Tally()
    made = records(tally)
    with capture_logs() as logged:
        for prefix in ("x" * 250, "y" * 250):
            assert made.made(message(prefix, content=b"secret")) is None
    assert tally.failed == {FUNCTION: 2}
    (entry,) = logged
    assert entry["log_level"] == "error"
    assert entry["prefix"] == "x" * 60
    assert "secret" not in str(entry)


def test_a_form_of_its_own_is_asked() -> None:
    router = MessageRouter(MessageRules(("*",), "t"), topic_part)

    def write(message: MessageOp, topic: str) -> ProducerRecord:
        return ProducerRecord(b"k", message.content, topic)

    made = MessageRecords("k", router, Tally(), write)
    assert made.made(message()) == ProducerRecord(b"k", b"c", "t")


def test_its_stand_in_has_its_place_and_no_table() -> None:
    op = stand_in(message())
    assert (op.kind, op.lsn, op.commit_time) == (Kind.INSERT, 90, 5)
    assert op.table.full_name == f"{FUNCTION}.p"


def test_a_stand_in_has_a_part_of_a_long_prefix() -> None:
    """Else what is left of a message would be too large for its topic, too."""
    assert stand_in(message("x" * 1_000_000)).table.name == "x" * 249
