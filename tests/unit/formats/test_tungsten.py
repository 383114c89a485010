"""The tungsten records of docs/formats.md."""

from dataclasses import replace

import pytest

from tests.support.oracles.vectors import TUNGSTEN
from walstream.errors import WalstreamError
from walstream.formats import ENCODERS
from walstream.formats.context import Context
from walstream.formats.tungsten import TungstenEncoder
from walstream.op import Kind, ReplicationOp, Table
from walstream.row import OMITTED, UNCHANGED

TABLE = Table("test", "msg", ("msg", "id"), key=(1,), type_oids=(25, 20))
ROW = ["Hello Kafka", "2384726"]
INSERT = ReplicationOp(
    Kind.INSERT,
    TABLE,
    4865,
    0,
    new=ROW,
    commit_time=553_275_037_000_000,  # 2017-07-13 15:30:37
)


def written(op: ReplicationOp, embed: str = "schema table committime") -> bytes:
    return TungstenEncoder(op.table, Context(embed=frozenset(embed.split()))).encode(op)


@pytest.mark.parametrize(
    ("op", "kind"),
    [
        (INSERT, b"INSERT"),
        (replace(INSERT, kind=Kind.UPDATE, old=["x", "1"]), b"UPDATE"),
        (replace(INSERT, kind=Kind.DELETE, old=ROW, new=None), b"DELETE"),
    ],
)
def test_op_encodes_to_its_record(op: ReplicationOp, kind: bytes) -> None:
    assert written(op) == TUNGSTEN % kind


@pytest.mark.parametrize(
    ("embed", "fields"),
    [
        ("", b""),
        ("table", b',"_source_table":"msg"'),
        ("schema", b',"_source_schema":"test"'),
        ("committime", b',"_committime":"2017-07-13 15:30:37.0"'),
    ],
)
def test_what_is_not_embedded_is_left_out(embed: str, fields: bytes) -> None:
    assert written(INSERT, embed) == (
        b'{"_seqno":"4865"%b,"record":{"msg":"Hello Kafka","id":"2384726"},'
        b'"_optype":"INSERT"}' % fields
    )


def test_what_was_not_sent_is_left_out_and_null_is_null() -> None:
    update = replace(INSERT, kind=Kind.UPDATE, new=[UNCHANGED, None], absent=True)
    assert b'"record":{"id":null}' in written(update)
    delete = replace(
        INSERT, kind=Kind.DELETE, new=None, old=[OMITTED, "7"], absent=True
    )
    assert b'"record":{"id":"7"}' in written(delete)


def test_each_transaction_has_its_own_time() -> None:
    encoder = TungstenEncoder(TABLE, Context())
    first, second = (
        encoder.encode(replace(INSERT, commit_time=time)) for time in (0, 1)
    )
    assert b'"_committime":"2000-01-01 00:00:00.0"' in first
    assert b'"_committime":"2000-01-01 00:00:00.000001"' in second


def test_names_and_values_are_escaped() -> None:
    table = Table('s"', "t\\", ('"c', "d"))
    value = written(replace(INSERT, table=table, new=['"\n', ""]))
    assert b'"_source_table":"t\\\\"' in value
    assert b'"_source_schema":"s\\""' in value
    assert b'"record":{"\\"c":"\\"\\n","d":""}' in value


def test_a_truncate_has_no_form() -> None:
    with pytest.raises(WalstreamError, match="has no record"):
        written(replace(INSERT, kind=Kind.TRUNCATE, new=None))


def test_format_is_registered_by_its_name() -> None:
    encoder = ENCODERS["tungsten"](TABLE, Context())
    assert encoder.encode(INSERT) == written(INSERT)
    assert not encoder.truncates
