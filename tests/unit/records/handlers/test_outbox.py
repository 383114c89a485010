"""Records of an outbox are those of a real EventRouter; what is no event stops or goes.

`differences` are the events of which Debezium's record is another, or which stop its
connector; whatever else differs fails.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import pytest
from structlog.testing import capture_logs

from tests.data.outbox.record import VARIANTS, table_of
from tests.support.oracles.outbox import Routed, golden, routed
from walstream.config.handler import OutboxHandler
from walstream.errors import ConfigError, HistoryError
from walstream.op import EPOCH_S, Kind, ReplicationOp, Table
from walstream.records.handlers.outbox import Outbox
from walstream.records.handlers.outbox_form import OutboxForm
from walstream.records.producer_record import ProducerRecord
from walstream.row import UNCHANGED, Value

_ILLEGAL: Final = {17}  # a topic's name that Kafka refuses: it is spelled here
_NULL: Final = {0x19}  # a route that is NULL stops both
# stay texts here, where the connector stops: numbers of more than 64 bits, a list, a
# null beside objects of several kinds, one field of two types
_TEXTS: Final = {0x03, 0x07, 0x12, 0x13, 0x16}
_WORD_TEXTS: Final = {8}
_LOST: Final = {0x11}  # EventRouter has the fields of one inner object alone
_ORDER: Final = {0x1B, 10}  # fields of several objects: theirs come in any order
_NAME: Final = re.compile(rb'(?<=\.public\.outbox\.)[^"]*(?=\.Value")')


def number(event: str) -> int:
    """Return what an event's id ends with: in hex, if it is a UUID."""
    return int(event[-2:], 16) if "-" in event else int(event.lstrip("b"))


def stops(variant: str) -> set[int]:
    """Name the events that stop a connector of this variant, and no walstream."""
    if table_of(variant) == "blobs":
        return set()
    if table_of(variant) == "words":
        return _WORD_TEXTS if "expand" in variant else set()
    if variant == "fixed":
        return _NULL
    if variant == "json_partition":  # there is no partition 99: it tries for ever
        return _ILLEGAL_EVENTS | {0x1D, 0xFF}
    return _ILLEGAL_EVENTS | (_TEXTS if "expand" in variant else set())


_ILLEGAL_EVENTS: Final = {0x17}


@pytest.mark.parametrize("variant", VARIANTS)
def test_records_are_those_of_eventrouter_but_for_the_differences(variant: str) -> None:
    theirs, ours = golden(variant), routed(variant)
    errors = {number(e) for e, one in ours.items() if isinstance(one, HistoryError)}
    unrouted = table_of(variant) == "outbox" and variant != "fixed"
    assert errors == (_NULL if unrouted else set())
    more = {number(event) for event in ours.keys() - theirs.keys()}
    assert more == stops(variant) | errors
    assert not theirs.keys() - ours.keys()
    for event, expected in theirs.items():
        found = ours[event]
        assert isinstance(found, Routed)
        same(found, expected)


def same(found: Routed, expected: Routed) -> None:
    where = f"{expected.topic} {expected.id}"
    assert found.topic == expected.topic, where
    assert found.key == expected.key, where
    assert found.headers == expected.headers, where
    if found.timestamp is not None:
        assert found.timestamp == expected.timestamp, where
    if found.partition is not None:
        assert found.partition == expected.partition, where
    event = number(expected.id)
    ours, value = (
        # EventRouter keeps the first name that a schema has, whatever the route is
        one and _NAME.sub(b"", one)
        for one in (found.value, expected.value)
    )
    if event in _LOST | _ORDER and ours != value and ours and value:
        mine, their = (payload(json.loads(one)) for one in (ours, value))
        assert filled(mine, their) == (mine if event in _ORDER else their), where
        assert (mine == their) == (event in _ORDER), where
    else:
        assert ours == value, where


def payload(document: Any) -> Any:
    return document.get("payload", document)


def filled(mine: Any, their: Any) -> Any:
    """Return what of mine theirs has: it lacks the fields of other objects."""
    if isinstance(mine, dict) and isinstance(their, dict):
        return {name: filled(mine[name], one) for name, one in their.items()}
    if isinstance(mine, list) and isinstance(their, list):
        return [filled(*pair) for pair in zip(mine, their, strict=True)]
    return mine


def test_every_time_of_a_column_was_compared() -> None:
    times = [
        one.timestamp
        for one in routed("string_headers").values()
        if isinstance(one, Routed) and one.timestamp is not None
    ]
    assert times == [1577934245678, 946684799999]
    partitions = {
        one.partition
        for one in routed("json_partition").values()
        if isinstance(one, Routed)
    }
    assert partitions == {None, 0, 1, 2, 99}


COLUMNS = ("id", "aggregatetype", "aggregateid", "payload", "at", "part")
TYPES = (2950, 25, 25, 3802, 1114, 23)
TABLE = Table("public", "outbox", COLUMNS, (0,), TYPES)


def handler(table: Table = TABLE, **told: Any) -> Outbox:
    made = OutboxHandler(kind="outbox", tables=["public.*"], **told)
    return Outbox(table, made.model_dump(exclude={"kind", "tables"}))


def op(kind: Kind = Kind.INSERT, **values: Value) -> ReplicationOp:
    row: Mapping[str, Value] = {
        "id": "e1", "aggregatetype": "Order", "aggregateid": "17",
        "payload": "{}", "at": None, "part": None, **values,
    }  # fmt: skip
    absent = any(not isinstance(one, str | None) for one in row.values())
    return ReplicationOp(
        kind, TABLE, 9, 4, new=[row[c] for c in COLUMNS], absent=absent
    )


def one(records: Iterator[ProducerRecord]) -> ProducerRecord:
    (record,) = records
    return record


def test_a_row_is_a_record_of_its_own_topic() -> None:
    assert one(handler().handle(op())) == ProducerRecord(
        b"17", b"{}", "outbox.event.Order", [("id", b"e1")]
    )


@pytest.mark.parametrize("kind", [Kind.DELETE, Kind.TRUNCATE])
def test_a_queue_is_emptied_without_a_record(kind: Kind) -> None:
    assert not list(handler().handle(op(kind)))


def test_updates_are_ignored_with_a_warning_or_stop() -> None:
    made = handler()
    with capture_logs() as lines:
        for _ in range(3):
            assert not list(made.handle(op(Kind.UPDATE)))
    (line,) = lines  # not one for each
    assert (line["log_level"], line["table"]) == ("warning", "public.outbox")
    with pytest.raises(HistoryError, match=r"'public\.outbox' at \(0/9, 4\) was upd"):
        list(handler(on_update="stop").handle(op(Kind.UPDATE)))


def test_an_update_that_moves_the_key_is_another_event() -> None:
    moved = op(Kind.UPDATE, id="e2")
    moved.key_changed = True
    moved.old = ["e1", None, None, None, None, None]
    (record,) = handler(on_update="stop").handle(moved)
    assert record.headers == [("id", b"e2")]


def test_another_sinks_partition_key_makes_no_event_of_an_update() -> None:
    moved = op(Kind.UPDATE, part="2")
    moved.key_changed = True
    moved.old = ["e1", "Order", "17", "{}", None, "1"]
    with capture_logs() as lines:
        assert not list(handler().handle(moved))
    assert len(lines) == 1


def test_no_event_is_skipped_because_it_has_no_record() -> None:
    """Else a handler's error skips the op: it only counts as failed."""
    unknown = Table("public", "outbox", COLUMNS, (0,))
    row = replace(op(part="s3cret"), table=unknown)
    with pytest.raises(HistoryError, match=r"\(0/9, 4\) has no record") as caught:
        list(handler(unknown, partition="part").handle(row))
    assert "s3cret" not in str(caught.value)


def test_a_lack_of_memory_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The handlers' chain has it tried again."""

    def lacking(_: OutboxForm, __: ReplicationOp) -> bytes:
        raise MemoryError

    monkeypatch.setattr(OutboxForm, "value", lacking)
    with pytest.raises(MemoryError):
        list(handler().handle(op()))


@pytest.mark.parametrize("half", ['{"a": "\\ud83d"}', '{"a": {"\\ude00": 1}}'])
def test_half_of_a_surrogate_pair_stays_a_text(half: str) -> None:
    """`json`, unlike jsonb, takes it."""
    made = handler(payload_form="expand")
    value = one(made.handle(op(payload=half))).value
    assert json.loads(value or b"") == half


def test_a_value_without_a_form_is_said_once_and_not_shown() -> None:
    types = (2950, 25, 25, 3802, 1114, 1700)
    table = Table("public", "outbox", COLUMNS, (0,), types)
    made = handler(table, payload_form="expand", envelope={"n": "part"})
    with capture_logs() as lines:
        for _ in range(3):
            record = one(made.handle(replace(op(part="NaN"), table=table)))
    assert json.loads(record.value or b"") == {"payload": {}, "n": None}
    (line,) = lines
    assert (line["table"], line["column"]) == ("public.outbox", "part")
    assert line["reason"] == "no finite number"


def test_a_value_that_was_not_sent_stops_if_it_is_read() -> None:
    with pytest.raises(HistoryError, match="lacks its column 'payload'"):
        list(handler().handle(op(payload=UNCHANGED)))
    assert one(handler().handle(op(at=UNCHANGED))).timestamp is None


@pytest.mark.parametrize(
    ("value", "millis"),
    [
        ("2000-01-01 00:00:00.0019", EPOCH_S * 1000 + 1),
        (None, None),
        ("infinity", None),
    ],
)
def test_its_time_is_a_columns(value: str | None, millis: int | None) -> None:
    assert one(handler(timestamp="at").handle(op(at=value))).timestamp == millis


def test_a_topic_of_one_name_reads_no_route() -> None:
    made = handler(topic="events")
    assert one(made.handle(op(aggregatetype=None))).topic == "events"
    assert "aggregatetype" not in made.named


@pytest.mark.parametrize(
    ("told", "what"),
    [
        ({"id": "nr"}, "has no column nr"),
        ({"headers": {"h": "a"}, "envelope": {"e": "b"}, "payload_form": "expand"},
         "has no column a, b"),
        ({"timestamp": "part"}, "'part' .* is not a timestamp"),
        ({"partition": "at"}, "'at' .* is not an integer"),
    ],
)  # fmt: skip
def test_columns_that_cannot_serve_are_refused(told: dict[str, Any], what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        handler(**told)


def test_types_are_not_asked_for_where_none_are_known() -> None:
    """At the start: the stream tells them."""
    unknown = Table("public", "outbox", COLUMNS, (0,))
    assert handler(unknown, timestamp="part").named


def test_no_error_holds_a_rows_value() -> None:
    with pytest.raises(HistoryError, match="column 'at'") as caught:
        list(handler(timestamp="at").handle(op(at="s3cret")))
    assert "s3cret" not in str(caught.value)
