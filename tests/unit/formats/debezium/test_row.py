"""The row alone, as Debezium's own ExtractNewRecordState makes it of its envelopes."""

import gzip
import json
import re
from typing import Final

import pytest

from tests.support.oracles.debezium import FOLDER, ops
from walstream.errors import ConfigError
from walstream.formats.debezium import (
    BACKFILL,
    DebeziumOptions,
    SinkTurn,
    UnwrappedEncoder,
)
from walstream.formats.debezium.options import Deletes
from walstream.op import Kind, ReplicationOp, Table, halves

_TABLE: Final = Table("public", "t", ("id", "v"), (0,), (23, 25))
_ADDED: Final = (
    "op,table,lsn,source.ts_ms,txId:tx,transaction.id,total_order,ts_ms,"
    "source.snapshot,sequence,ts_us,schema,db,origin,xmin"
)
MODES: Final[dict[Deletes, tuple[str, str]]] = {
    "tombstone": ("", "__"),
    "rewrite": (_ADDED, "__"),
    "rewrite-with-tombstone": ("", "__"),
    "drop": ("op,ts_ns", "x."),
}
_EDITS: Final = (  # what differs, with its reason, in test_golden.py
    (re.compile('"scale":"2046"'), '"scale":"-2"'),
    (re.compile(r'"nneg":"[A-Za-z0-9+/=]{900,}"'), '"nneg":"ew=="'),
    (re.compile('"nm":null(?=,"ch":"x")'), '"nm":"nam"'),
    (re.compile('"ts":-9223372036853775810'), '"ts":9223372036825200000'),
    (
        re.compile('({"type":"int(?:32|64)","optional":true)(,"field":"w"})'),
        r'\1,"default":5\2',
    ),
    # Kafka's JsonConverter writes these, and reads them as 0
    (re.compile(r'"NaN"|"Infinity"|-0\.0'), "0.0"),
    (re.compile(r'("__sequence":"\[)(?:null|\\"\d+\\")'), r"\1…"),
    (re.compile(r'"(__ts_[mu]s|x\.ts_ns)":\d+'), r'"\1":…'),
)


def _same(value: str | None) -> str | None:
    for pattern, text in _EDITS:
        value = value and pattern.sub(text, value)
    return value


def _options(mode: Deletes, fields: str = "", prefix: str = "__") -> DebeziumOptions:
    return DebeziumOptions(
        "dbz",
        "postgres",
        schemas=True,
        transaction_block=True,
        deletes=mode,
        add_fields=tuple(fields.split(",")) if fields else (),
        add_prefix=prefix,
    )


@pytest.mark.parametrize("mode", MODES)
def test_values_are_those_of_debezium(mode: Deletes) -> None:
    golden = json.loads(gzip.decompress((FOLDER / "unwrapped.json.gz").read_bytes()))
    options = _options(mode, *MODES[mode])
    turn = SinkTurn()
    found: dict[str, list[str | None]] = {topic: [] for topic in golden[mode]}
    encoders: dict[int, UnwrappedEncoder] = {}
    for _, op in ops():
        if not isinstance(op, ReplicationOp) or op.table.schema != "public":
            continue
        encoder = encoders.get(id(op.table)) or UnwrappedEncoder(
            op.table, options, turn
        )
        encoders[id(op.table)] = encoder
        for part in halves(op) if op.key_changed else (op,):
            found[f"dbz.{op.table.full_name}"] += [
                None if value is None else value.decode()
                for value in encoder.values(part)
            ]
    for topic, theirs in golden[mode].items():
        mine = found[topic]
        assert len(mine) == len(theirs), topic
        for number, (ours, record) in enumerate(zip(mine, theirs, strict=True)):
            assert _same(ours) == _same(record), f"{topic}, {number}"


@pytest.mark.parametrize(
    ("mode", "deleted"),
    [
        ("tombstone", [None]),
        ("drop", []),
        ("rewrite", [b'{"id":1,"v":null,"__deleted":"true"}']),
        ("rewrite-with-tombstone", [b'{"id":1,"v":null,"__deleted":"true"}', None]),
    ],
)
def test_a_delete_is_what_the_mode_says(
    mode: Deletes, deleted: list[bytes | None]
) -> None:
    encoder = UnwrappedEncoder(_TABLE, DebeziumOptions("app", deletes=mode), SinkTurn())
    delete = ReplicationOp(Kind.DELETE, _TABLE, 5, 0, old=["1", None])
    assert encoder.values(delete) == deleted


def test_a_truncate_has_no_record() -> None:
    encoder = UnwrappedEncoder(_TABLE, DebeziumOptions("app"), SinkTurn())
    assert encoder.values(ReplicationOp(Kind.TRUNCATE, _TABLE, 5, 0)) == []


def test_a_backfilled_row_names_its_point_and_one_beside_the_stream_none() -> None:
    row = ReplicationOp(
        Kind.INSERT, _TABLE, 5, 0, new=["1", "x"], row_lsn=5, xid=0, snapshot=True
    )
    options = DebeziumOptions(
        "app", add_fields=("op", "lsn", "txId", "snapshot", "sequence", "id")
    )
    written = [
        json.loads(UnwrappedEncoder(_TABLE, options, SinkTurn(), *how).encode(row))
        for how in ((BACKFILL,), ())
    ]
    assert [one["__op"] for one in written] == ["r", "r"]
    assert [one["__snapshot"] for one in written] == ["true", "incremental"]
    assert [one["__lsn"] for one in written] == [5, None]
    assert {one["__sequence"] for one in written} == {'[null,"5"]'}
    assert [(one["__txId"], one["__id"]) for one in written] == [(None, None)] * 2


def test_origin_is_that_of_the_transaction() -> None:
    turn = SinkTurn()
    turn.come_from("east", 77)
    options = DebeziumOptions("app", add_fields=("origin", "origin_lsn"))
    insert = ReplicationOp(Kind.INSERT, _TABLE, 5, 0, new=["1", "x"])
    value = UnwrappedEncoder(_TABLE, options, turn).encode(insert)
    assert value == b'{"id":1,"v":"x","__origin":"east","__origin_lsn":77}'


@pytest.mark.parametrize("named", ["", "source", "source.none", "nothing", "before.id"])
def test_a_field_that_no_record_has_is_refused(named: str) -> None:
    with pytest.raises(ConfigError, match="add_fields names"):
        UnwrappedEncoder(
            _TABLE, DebeziumOptions("app", add_fields=(named,)), SinkTurn()
        )
