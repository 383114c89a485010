"""When a row's position has to be kept; how: tests/integration/test_mirror_ops.py."""

from typing import Any

import pytest

from consumer.mirror.row_position import Decides, decides, number_of
from consumer.op import ConsumerRecord, RegisteredOp
from tests.support.loads.envelope import envelope, read, record
from tests.support.loads.op import Texts, make
from walstream.op import Kind, ReplicationOp, Table

KEY = {"a": "1", "b": "2"}


def ask(raw: bytes | None, more: Texts | None = None, *, ask: bool = True) -> Decides:
    op = make(Kind.INSERT, "public.t", new={**KEY, **(more or {})})
    op.record = op.record._replace(key=raw)
    return decides(op, KEY, ask=ask)


@pytest.mark.parametrize("raw", [b'["1","2"]', b"12", b'["public.t"]', b"public.t"])
def test_a_key_that_decides_the_row_needs_no_position(raw: bytes) -> None:
    assert ask(raw, {"c": "3"}) is Decides.YES


@pytest.mark.parametrize(
    "raw", [None, b'["1"]', b'["2","1"]', b"", b"\xff", b"null", b"[" * 9999]
)
def test_any_other_key_needs_one(raw: bytes | None) -> None:
    assert ask(raw) is Decides.NO


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b'["1","2"]', "2"),  # it may be of a and c
        (b"12", "2"),
        (b"12", ""),  # of a, b and c
        (b"12", None),
        (b'["public.t"]', "public.t"),
    ],
)
def test_a_key_that_other_columns_may_have_made_is_in_doubt(
    raw: bytes, text: str | None
) -> None:
    assert ask(raw, {"c": text}) is Decides.MAYBE
    assert ask(raw, {"c": text}, ask=False) is Decides.YES


def test_the_insert_of_a_key_that_was_written_anew_is_newer_than_its_delete() -> None:
    """Debezium gives both one LSN and one order; where the keys are one, it stays."""
    gone = read(record(envelope("d", before={"id": 1}, lsn=5, order=7)))
    there = read(record(envelope("c", after={"id": 1}, lsn=5, order=7)))
    assert number_of(gone) < number_of(there)


def test_walstreams_own_number_orders_the_ops_of_a_row() -> None:
    op = make(Kind.DELETE, "public.t", old=KEY, seq_id=7)
    assert number_of(op) == 7


@pytest.mark.parametrize(
    ("key", "columns", "headers", "wanted"),
    [
        (b"\0", (0,), (), Decides.YES),
        (b"\0", (0, 1), (), Decides.YES),
        (b"\0", (0, 2), (), Decides.NO),
        (None, (), (), Decides.YES),  # all of the table are in one partition
        (b"\0", (0,), (("walstream-layout", b"2"),), Decides.NO),
    ],
)
def test_a_registrys_key_names_its_columns(
    key: bytes | None, columns: tuple[int, ...], headers: Any, wanted: Decides
) -> None:
    table = Table("public", "t", ("a", "b", "c"), columns)
    made = ReplicationOp(Kind.INSERT, table, 1, 0, None, ["1", "2", "3"])
    record = ConsumerRecord("t", 0, 0, key, b"", 0, headers)
    assert decides(RegisteredOp(made, record), KEY) is wanted
