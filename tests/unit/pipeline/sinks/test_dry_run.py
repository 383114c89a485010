"""The sinks `log` and `discard`: as strict as the one that sends, silent on values."""

from typing import Any

import pytest
from structlog.testing import capture_logs

from walstream.errors import ConfigError, HistoryError
from walstream.formats.context import Context
from walstream.op import Kind, ReplicationOp, Table
from walstream.pipeline.ledger import Transaction
from walstream.pipeline.sinks.dry_run import DrySink
from walstream.records.encoding import SinkRules
from walstream.records.producer_record import ProducerRecord
from walstream.records.router import Router, RoutingRules, TopicMapping

TABLE = Table("public", "t", ("id", "v"), (0,))
TRANSACTION = Transaction(8)


def rules(**given: Any) -> SinkRules:
    usual: dict[str, Any] = {
        "name": "log",
        "format": "op",
        "partitioner": "",
        "on_truncate": "send",
        "split_key_updates": True,
        "source_header": b"",
        "context": Context(),
    }
    return SinkRules(**{**usual, **given})


def sink(*, values: bool = False, says: bool = True, **given: Any) -> DrySink:
    only = {"t": TopicMapping("here")}
    router = Router("app", RoutingRules(only, "", ""))
    return DrySink(rules(**given), router, says=says, values=values)


def op(kind: Kind = Kind.INSERT, table: Table = TABLE, **more: Any) -> ReplicationOp:
    row: dict[str, Any] = {} if kind is Kind.TRUNCATE else {"new": ["1", "s3cret"]}
    return ReplicationOp(kind, table, 8, 3, **{**row, **more})


def said(dry: DrySink, *ops: ReplicationOp) -> list[Any]:
    with capture_logs() as lines:
        for one in ops:
            assert dry.send(one, TRANSACTION)
    assert dry.ready()
    assert TRANSACTION.undelivered == dry.in_flight == 0
    return lines


def test_a_line_an_op_names_it_and_no_value() -> None:
    (line,) = said(sink(), op())
    assert line.pop("bytes") > 50
    assert line == {
        "event": "op",
        "log_level": "info",
        "sink": "log",
        "table": "public.t",
        "kind": "insert",
        "lsn": "0/8",
        "seq_id": 3,
        "topic": "here",
    }


def test_values_are_printed_where_they_are_asked_for() -> None:
    (line,) = said(sink(values=True), op())
    assert line["key"] == '["1"]'
    assert "s3cret" in line["value"]


def test_discard_says_nothing() -> None:
    assert said(sink(says=False), op(), op(Kind.TRUNCATE)) == []


def test_an_update_that_moves_its_key_is_two() -> None:
    moved = op(Kind.UPDATE, old=["0", "x"], key_changed=True)
    assert [line["kind"] for line in said(sink(), moved)] == ["delete", "insert"]
    (line,) = said(sink(split_key_updates=False), moved)
    assert line["kind"] == "update"


def test_a_truncate_follows_its_rule() -> None:
    assert said(sink(), op(Kind.TRUNCATE))[0]["kind"] == "truncate"
    assert said(sink(on_truncate="skip"), op(Kind.TRUNCATE)) == []
    with pytest.raises(HistoryError, match="on_truncate"):
        sink(on_truncate="stop").send(op(Kind.TRUNCATE), TRANSACTION)
    dry = sink(format="tungsten")
    (line,) = said(dry, op(Kind.TRUNCATE), op(Kind.TRUNCATE))
    assert "tungsten has no record" in line["event"]
    assert dry.tally.dropped == {"public.t": 2}


def test_what_has_no_topic_is_dropped_and_counted_whatever_it_is() -> None:
    dry = sink()
    other = op(table=Table("public", "u", ("id",), (0,)), new=["1"])
    dry.put(ProducerRecord(b"k", b"v"), other, TRANSACTION)
    (line,) = said(dry, other) or [{}]
    assert line == {} or "no topic" in line["event"]
    assert dry.tally.dropped == {"public.u": 2}
    with capture_logs() as lines:
        dry.close()
    assert lines[0]["count"] == 2


def test_a_handlers_record_is_said_too() -> None:
    dry = sink(values=True)
    with capture_logs() as lines:
        dry.put(ProducerRecord(b"k", b"v"), op(), TRANSACTION)
    assert (lines[0]["key"], lines[0]["value"]) == ("k", "v")


def test_a_record_that_names_its_topic_is_said_with_it_or_refused() -> None:
    dry = sink(values=True)
    with capture_logs() as lines:
        dry.put(ProducerRecord(None, None, "there"), op(), TRANSACTION)
    (line,) = lines
    assert (line["topic"], line["key"], line["value"]) == ("there", None, None)
    with pytest.raises(HistoryError, match="does not allow"):
        dry.put(ProducerRecord(None, None, "not there"), op(), TRANSACTION)


def test_what_it_cannot_write_is_refused_as_everywhere() -> None:
    with pytest.raises(HistoryError, match="no complete old row"):
        sink(strict=True).send(op(absent=True), TRANSACTION)
    assert sink().knows(TABLE)
    router = Router("app", RoutingRules({}, "x" * 249 + "{table}", ""))
    with pytest.raises(ConfigError, match="does not allow"):
        DrySink(rules(), router, says=True).knows(TABLE)
    assert sink().topics == {}
    assert not sink().waiting
