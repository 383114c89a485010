"""walstream writes what a real Debezium 3.5 wrote of the same WAL, byte for byte.

But for `differences`, edits of golden records, each with its reason. A record that
differs otherwise fails, and so does an edit that changes nothing.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

import pytest

from tests.support.oracles.debezium import (
    VARIANTS,
    Record,
    golden,
    heartbeat,
    ops,
    written,
)
from walstream.op import ReplicationOp

_VARIANTS: Final = tuple(VARIANTS)
_BOTH_BYTES: Final = ("dbz", "dus")  # decimals as bytes

SCALE: Final = "numeric(3,-2) has its own scale; Debezium reads its bits as 2046"
NAME: Final = "a column of type name has its value; Debezium sends null"
BEYOND: Final = "a timestamp beyond 64 bits is infinite; Debezium's number wraps"
INDEX: Final = (
    "the key is that of REPLICA IDENTITY USING INDEX, whose columns were sent"
)
RENAMED: Final = "the default of a column that Debezium asked for after its renaming"
MESSAGE: Final = "a logical message takes no number of its transaction"

_HUGE: Final = re.compile(r'"nneg":"[A-Za-z0-9+/=]{900,}"')
_LONG: Final = re.compile(r'"nneg":"12300\.0{2046}"')
_ID: Final = re.compile(r'"payload":{"id":[01]}')
_BLOCK: Final = re.compile(r'"transaction":{"id":"791:26631624","total_order":4,[^}]*}')
_COLLECTION: Final = re.compile(
    r'{"data_collection":"io\.debezium[^"]*","event_count":1},'
)


class Edit(NamedTuple):
    """A change of a golden record into what walstream writes."""

    reason: str
    field: str  # of Record
    pattern: str | re.Pattern[str]
    text: str


def differences() -> Iterator[tuple[str, int, Edit]]:
    """Yield topic, number and edit of each record that differs."""
    for variant in _BOTH_BYTES:
        topic = f"{variant}.public.types"
        for number in range(5):
            yield topic, number, Edit(SCALE, "value", '"scale":"2046"', '"scale":"-2"')
        huge = Edit(SCALE, "value", _HUGE, '"nneg":"ew=="')
        yield topic, 0, huge
        yield topic, 0, Edit(NAME, "value", '"nm":null', '"nm":"nam"')
        wrapped, infinite = '"ts":-9223372036853775810', '"ts":9223372036825200000'
        yield topic, 4, Edit(BEYOND, "value", wrapped, infinite)
    decimals = Edit(SCALE, "value", _LONG, '"nneg":"12300"')
    yield "dstr.public.types", 0, decimals
    for variant in _VARIANTS:
        for number, kind in ((1, "int32"), (2, "int32"), (3, "int64")):
            told = f'{{"type":"{kind}","optional":true,"field":"w"}}'
            shown = f'{{"type":"{kind}","optional":true,"default":5,"field":"w"}}'
            yield f"{variant}.public.ddl", number, Edit(RENAMED, "value", told, shown)
        topic = f"{variant}.public.idxid"
        id_field = '{"type":"int32","optional":false,"field":"id"}'
        code_field = '{"type":"string","optional":false,"field":"code"}'
        for number, code in enumerate(("c1", "c1", "c1", "c1", "c2", "c2", "c2")):
            yield topic, number, Edit(INDEX, "key", id_field, code_field)
            payload = f'"payload":{{"code":"{code}"}}'
            yield topic, number, Edit(INDEX, "key", _ID, payload)
            if number in {2, 3}:
                yield topic, number, Edit(INDEX, "headers", '{"id":1}', '{"code":"c2"}')
            elif number == 4:
                yield topic, number, Edit(INDEX, "headers", '{"id":0}', '{"code":"c1"}')
    yield "dbz.message", 0, Edit(MESSAGE, "value", _BLOCK, '"transaction":null')
    count = Edit(MESSAGE, "value", '"event_count":4,', '"event_count":3,')
    yield "dbz.transaction", 55, count
    yield "dbz.transaction", 55, Edit(MESSAGE, "value", _COLLECTION, "")


# What differs between two runs, or is another statement on purpose: see below.
_PROCESSED: Final = re.compile(
    r'(?<="op":"[cudtr]",)"ts_ms":\d+,"ts_us":\d+,"ts_ns":\d+|(?<="op":"m",)"ts_ms":\d+'
)
_SEQUENCE: Final = re.compile(r'(?<="sequence":"\[)(?:null|\\"\d+\\")(?=,)')


def same_in_both(value: str | None) -> str | None:
    """Return a value without the time of processing, and the sequence's first LSN."""
    return value and _SEQUENCE.sub("…", _PROCESSED.sub("…", value))


def edited(record: Record, edit: Edit) -> Record:
    """Apply an edit; fail if its reason applies no longer."""
    fields = {
        "key": record.key or "",
        "value": record.value or "",
        "headers": json.dumps(record.headers, separators=(",", ":")),
    }
    told = fields[edit.field]
    if isinstance(edit.pattern, str):
        old, new = edit.pattern, edit.text
        if edit.field == "headers":  # in JSON, their quotes are escaped
            old, new = (json.dumps(one)[1:-1] for one in (old, new))
        count = told.count(old)
        fields[edit.field] = told.replace(old, new)
    else:
        fields[edit.field], count = edit.pattern.subn(edit.text, told)
    assert count, f"{record.topic}: {edit.reason}: applies no longer"
    headers = tuple((name, value) for name, value in json.loads(fields["headers"]))
    return Record(
        record.topic,
        None if record.key is None else fields["key"],
        None if record.value is None else fields["value"],
        headers,
    )


@pytest.mark.parametrize("variant", VARIANTS)
def test_records_are_those_of_debezium_but_for_the_differences(variant: str) -> None:
    edits: dict[tuple[str, int], list[Edit]] = {}
    for topic, number, edit in differences():
        edits.setdefault((topic, number), []).append(edit)
    mine = written(variant)
    transactions = f"{variant}.transaction"
    topics = {topic for topic in golden() if topic.startswith(f"{variant}.")}
    assert topics == mine.keys() - (set() if variant == "dbz" else {transactions})
    for topic in sorted(topics):
        theirs = golden()[topic]
        for number, (ours, record) in enumerate(zip(mine[topic], theirs, strict=True)):
            expected = record
            for edit in edits.get((topic, number), ()):
                expected = edited(expected, edit)
            where = f"{topic}, record {number}"
            assert ours.key == expected.key, where
            assert ours.headers == expected.headers, where
            value = same_in_both(ours.value)
            assert value == same_in_both(expected.value), where


def test_differences_are_few_and_of_known_records() -> None:
    known = {(t, n) for t, records in golden().items() for n in range(len(records))}
    found = Counter(edit.reason for _, _, edit in differences())
    assert {(topic, number) for topic, number, _ in differences()} <= known
    records = {(topic, number) for topic, number, _ in differences()}
    assert len(records) == 53
    assert found == {
        SCALE: 13, NAME: 2, BEYOND: 2, INDEX: 68, RENAMED: 12, MESSAGE: 3,
    }  # fmt: skip


def test_the_sequence_begins_with_the_commit_and_ends_with_the_row() -> None:
    """Debezium's begins with the end of the commit that it saw last: no replay's."""
    commits = {
        str(what.row_lsn): str(what.lsn)
        for _, what in ops()
        if isinstance(what, ReplicationOp)
    }
    seen = 0
    for topic, records in written("dbz").items():
        for record in records:
            if record.value is None or ".public." not in topic:
                continue
            source = json.loads(record.value)["payload"]["source"]
            first, second = json.loads(source["sequence"])
            assert first == commits[second]
            assert second == str(source["lsn"])
            seen += 1
    assert seen == 42


def test_total_order_is_that_of_debezium() -> None:
    for topic in ("dbz.public.pk2", "dbz.public.nopk", "dbz.public.ddl"):
        mine, theirs = (
            [json.loads(r.value)["payload"]["transaction"] for r in found if r.value]
            for found in (written("dbz")[topic], golden()[topic])
        )
        assert mine == theirs


def test_a_heartbeat_is_that_of_debezium() -> None:
    for record in golden()["__debezium-heartbeat.dbz"]:
        millis = json.loads(record.value or "")["payload"]["ts_ms"]
        assert heartbeat("dbz", millis) == record


def test_a_replay_writes_the_same_bytes() -> None:
    assert written("dbz") == written("dbz")
