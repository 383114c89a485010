"""A large op's record: its key is whole, and so is what is no text in its format."""

from typing import Any

from walstream.formats import ENCODERS, texts_of
from walstream.formats.context import Context
from walstream.formats.placeholder import StandIn
from walstream.kafka.target import Target
from walstream.op import Kind, LargeOp, ReplicationOp, Table
from walstream.records.encoding import TableEncoding
from walstream.records.key import KEY_FORMS
from walstream.records.large_op import made, plain
from walstream.records.router import Route

TYPES = (20, 25, 3802, 17)  # int8, text, jsonb, bytea
TABLE = Table("public", "t", ("id", "name", "doc", "raw"), (0,), TYPES)


def meant(text: str) -> StandIn:
    return StandIn(memoryview(text.encode()))


def target(kind: str) -> Target:
    encoder = ENCODERS[kind](TABLE, Context())
    others = frozenset(range(4)).difference(texts_of(encoder))
    form = KEY_FORMS["json"](TABLE, (1, 0), Context().origin)
    unused: Any = None
    return Target(
        TableEncoding(Route("t", form), encoder.encode, True, others), None, unused
    )


def test_key_columns_are_whole_and_json_stays_json() -> None:
    row = ["1", meant("näme"), meant('{"a": [1, 2.50]}'), meant(r"\x00ff")]
    op = made(ReplicationOp(Kind.INSERT, TABLE, 100, 0, None, row))
    assert isinstance(op, LargeOp)
    for kind in ("op", "event", "tungsten"):
        key, record = target(kind).large(op)
        assert key == '["näme","1"]'.encode()
        assert record.value() == ENCODERS[kind](TABLE, Context()).encode(plain(op))
    assert b'"doc":{"a": [1, 2.50]}' in target("event").large(op)[1].value()
