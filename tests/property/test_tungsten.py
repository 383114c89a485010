"""The tungsten format against formats.md's words."""

import json

from hypothesis import given
from hypothesis import strategies as st

from tests.support.strategies import ops
from walstream.formats.context import EMBEDDED, Context
from walstream.formats.tungsten import TungstenEncoder
from walstream.op import Kind, ReplicationOp
from walstream.row import NotSent

ROWS = ops().filter(lambda op: op.kind is not Kind.TRUNCATE)


@given(ROWS, st.frozensets(st.sampled_from(sorted(EMBEDDED))))
def test_every_value_is_a_text_or_null(
    op: ReplicationOp, embed: frozenset[str]
) -> None:
    value = TungstenEncoder(op.table, Context(embed=embed)).encode(op)
    fields = json.loads(value)
    row = (op.old if op.kind is Kind.DELETE else op.new) or ()
    assert fields.pop("record") == {
        name: text
        for name, text in zip(op.table.columns, row, strict=True)
        if not isinstance(text, NotSent)
    }
    assert fields.pop("_seqno") == str(op.lsn)
    assert fields.pop("_optype") == op.kind.value.upper()
    embedded = {"schema": op.table.schema, "table": op.table.name}
    for name in embed - {"committime"}:
        assert fields.pop(f"_source_{name}") == embedded[name]
    assert fields.keys() == {"_committime"} & {f"_{name}" for name in embed}
