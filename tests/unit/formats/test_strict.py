"""What lacks a value goes to no reader that would take it for null."""

from dataclasses import replace

import pytest

from walstream.errors import HistoryError
from walstream.formats.op import OpEncoder
from walstream.formats.strict import whole_rows
from walstream.op import Kind, ReplicationOp, Table
from walstream.row import OMITTED, UNCHANGED

TABLE = Table("public", "t", ("id", "v"), key=(0,))
INSERT = ReplicationOp(Kind.INSERT, TABLE, 16, 3, new=["1", None])


@pytest.mark.parametrize(
    "op",
    [
        INSERT,
        replace(INSERT, kind=Kind.UPDATE, old=["1", "x"]),
        replace(INSERT, kind=Kind.DELETE, old=["1", None], new=None),
        replace(INSERT, kind=Kind.TRUNCATE, new=None),
    ],
)
def test_what_is_whole_is_encoded(op: ReplicationOp) -> None:
    encode = OpEncoder(TABLE).encode
    assert whole_rows(encode)(op) == encode(op)


@pytest.mark.parametrize(
    "op",
    [
        replace(INSERT, kind=Kind.UPDATE),
        replace(INSERT, kind=Kind.UPDATE, old=["1", OMITTED], absent=True),
        replace(INSERT, kind=Kind.DELETE, old=["1", OMITTED], new=None, absent=True),
        replace(INSERT, new=["1", UNCHANGED], absent=True),
    ],
)
def test_what_lacks_a_value_is_refused_without_any(op: ReplicationOp) -> None:
    with pytest.raises(HistoryError, match=r"'public\.t' at \(0/10, 3\)") as refused:
        whole_rows(OpEncoder(TABLE).encode)(op)
    assert "strict = false" in refused.value.hint
