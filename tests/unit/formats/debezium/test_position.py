"""Positions of ops in records."""

from dataclasses import replace
from typing import Any

import pytest

from walstream.formats.debezium.options import DebeziumOptions
from walstream.formats.debezium.position import (
    HEADER,
    OpPosition,
    PositionHeaders,
    position,
    read_header,
)
from walstream.op import Kind, ReplicationOp, Table

_OP = ReplicationOp(Kind.INSERT, Table("s", "t", ("c",)), 28318112, 3, new=["1"])
_READ = ReplicationOp(
    Kind.INSERT, Table("s", "t", ("c",)), 28318112, 1 << 32, new=["1"], snapshot=True
)


def test_a_header_names_an_op() -> None:
    headers = PositionHeaders(DebeziumOptions("app"), unwrapped=False)
    assert headers.of(_OP) == [(HEADER, b"28318112/3")]
    assert headers.of(replace(_OP, seq_id=4)) == [(HEADER, b"28318112/4")]
    assert headers.of(replace(_OP, lsn=28318113)) == [(HEADER, b"28318113/3")]
    assert read_header(b"28318112/3") == (28318112, 3)


@pytest.mark.parametrize(
    "value",
    [b"", b"1", b"1/", b"/1", b"1/x", b"-1/0", b"1/2/3", b"18446744073709551616/0"],
)
def test_another_value_is_refused(value: bytes) -> None:
    with pytest.raises(ValueError, match="no position"):
        read_header(value)


@pytest.mark.parametrize(
    ("options", "op", "unwrapped", "needed"),
    [
        (DebeziumOptions("app"), _OP, False, True),
        (DebeziumOptions("app", transaction_block=True), _OP, False, False),
        (DebeziumOptions("app", transaction_block=True), _OP, True, True),
        (DebeziumOptions("app", transaction_block=True), _READ, False, True),
        (
            DebeziumOptions("app", transaction_block=True, version="3.5.0.Final"),
            _OP,
            False,
            True,
        ),
        (DebeziumOptions("app", position_header=False), _OP, True, False),
    ],
)
def test_a_header_is_sent_where_the_envelope_does_not_tell(
    options: DebeziumOptions, op: ReplicationOp, unwrapped: bool, needed: bool
) -> None:
    assert bool(PositionHeaders(options, unwrapped=unwrapped).of(op)) is needed


def envelope(version: str, order: int | None = 3) -> dict[str, Any]:
    block = None if order is None else {"total_order": order}
    source = {"version": version, "lsn": 77, "sequence": '["99","77"]'}
    return {"source": source, "transaction": block}


def test_the_block_of_walstream_tells_it() -> None:
    assert position(envelope("walstream 0.1.0"), {}) == OpPosition(99, 2, exact=True)


def test_a_header_goes_before_the_block() -> None:
    assert position(envelope("walstream"), {HEADER: b"5/6"}) == OpPosition(
        5, 6, exact=True
    )


def test_a_record_of_debezium_has_its_rows_own_lsn() -> None:
    assert position(envelope("3.5.0.Final"), {}) == OpPosition(77, 2, exact=False)
    assert position(envelope("3.5.0.Final", None), {}) == OpPosition(77, 0, exact=False)


def test_without_a_block_walstreams_has_that_too() -> None:
    assert position(envelope("walstream", None), {}) == OpPosition(77, 0, exact=False)
