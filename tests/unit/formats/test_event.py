"""The event records of docs/formats.md, both ways."""

import re
from dataclasses import replace
from uuid import NAMESPACE_URL, uuid5

import pytest

from tests.support.oracles.vectors import EVENT
from walstream.errors import WalstreamError
from walstream.formats import ENCODERS, LineEncoder
from walstream.formats.context import Context, SourceOrigin
from walstream.formats.event import EventEncoder, Number, decode
from walstream.op import Kind, ReplicationOp, Table
from walstream.row import OMITTED, UNCHANGED

CONTEXT = Context(SourceOrigin("127.0.0.1", "test", 7, "walstream"))
TABLE = Table("public", "test", ("b", "a"), key=(1,), type_oids=(25, 20))
TIME = 848_557_682_019_132  # 2026-11-21 06:28:02.019132
INSERT = ReplicationOp(
    Kind.INSERT,
    TABLE,
    28318112,
    0,
    new=["a", "369223"],
    row_lsn=28317656,
    commit_time=TIME,
)


def written(op: ReplicationOp, context: Context = CONTEXT) -> bytes:
    """Encode, with the nanoseconds and the UUID of the document."""
    encoded = EventEncoder(op.table, context).encode(op)
    encoded = re.sub(rb'(019132)Z"', rb'\g<1>519Z"', encoded)
    uuid = rb'"UUID":"5bdc360e-91a6-4062-9c7d-94cceabcc7ec"'
    return re.sub(rb'"UUID":"[0-9a-f-]{36}"', uuid, encoded)


@pytest.mark.parametrize(
    ("op", "record"),
    [
        (INSERT, EVENT % (b"insert", b'{"a":369223,"b":"a"}')),
        (
            replace(INSERT, kind=Kind.UPDATE, old=["", "2"], new=[None, "1"]),
            EVENT % (b"update", b'{"a":1,"b":null}'),
        ),
        (
            replace(INSERT, kind=Kind.UPDATE, new=[UNCHANGED, "9007199254740993"]),
            EVENT % (b"update", b'{"a":9007199254740993}'),
        ),
        (
            replace(INSERT, kind=Kind.DELETE, new=None, old=["x", "1"]),
            EVENT % (b"delete", b'{"a":1,"b":null}'),
        ),
        (
            replace(INSERT, kind=Kind.DELETE, new=None, old=[OMITTED, "1"]),
            EVENT % (b"delete", b'{"a":1,"b":null}'),
        ),
        (
            replace(INSERT, kind=Kind.TRUNCATE, new=None),
            EVENT % (b"truncate", b"{}"),
        ),
    ],
)
def test_op_encodes_to_its_record(op: ReplicationOp, record: bytes) -> None:
    assert written(op) == record


def test_a_deleted_row_without_a_key_is_there_as_far_as_it_was_sent() -> None:
    table = replace(TABLE, key=())
    op = replace(INSERT, kind=Kind.DELETE, table=table, new=None, old=["x", OMITTED])
    assert written(op).endswith(b'"Columns":{"b":"x"}}')


def test_names_are_sorted_and_escaped() -> None:
    names = ("b", "a", 'é"', "B", "\U00010000", "\uffff")
    table = Table("s", 't"', names, type_oids=(23,))
    op = replace(INSERT, table=table, new=list("123456"))
    context = Context(SourceOrigin('h"%d', "d"))
    assert written(op, context).startswith(
        b'{"Host":"h\\"%d","Database":"d","Table":"t'
    )
    assert written(op).endswith(
        '"Columns":{"B":"4","a":"2","b":1,"é\\"":"3","\uffff":"6","\U00010000":"5"}}'.encode()
    )


def test_the_uuid_is_that_of_the_op() -> None:
    encoder = EventEncoder(TABLE, CONTEXT)
    found = decode(encoder.encode(INSERT)).uuid
    assert found == str(uuid5(NAMESPACE_URL, "walstream:7/walstream/28318112/0"))
    origin = CONTEXT.origin
    others = [
        decode(EventEncoder(TABLE, Context(context)).encode(op)).uuid
        for context, op in (
            (origin, replace(INSERT, seq_id=1)),
            (origin, replace(INSERT, lsn=28318113)),
            (replace(origin, slot="other"), INSERT),
            (replace(origin, system_identifier=8), INSERT),
        )
    ]
    assert len({found, *others}) == 5
    moved = replace(INSERT, row_lsn=1, commit_time=0, new=["", ""], kind=Kind.UPDATE)
    assert decode(encoder.encode(moved)).uuid == found


def test_each_op_has_its_own_time() -> None:
    encoder = EventEncoder(TABLE, CONTEXT)
    times = [0, 500_000, 500_000, 0]
    found = [
        decode(encoder.encode(replace(INSERT, commit_time=time))).timestamp
        for time in times
    ]
    whole, half = "2000-01-01T00:00:00Z", "2000-01-01T00:00:00.5Z"
    assert found == [whole, half, half, whole]


RECORD = EVENT % (b"insert", b'{"a":9007199254740993,"b":null}')


def test_record_reads_back() -> None:
    record = decode(RECORD)
    assert (record.host, record.database, record.table) == ("127.0.0.1", "test", "test")
    assert (record.kind, record.row_lsn) == (Kind.INSERT, 28317656)
    assert record.timestamp == "2026-11-21T06:28:02.019132519Z"
    assert record.uuid == "5bdc360e-91a6-4062-9c7d-94cceabcc7ec"
    assert record.columns() == {"a": Number("9007199254740993"), "b": None}
    assert record.value == RECORD


def test_a_record_becomes_an_op_of_texts() -> None:
    columns = (
        b'{"a":1.50,"b":true,"c":"x","d":null,"e":[1e400,{"f":false}],'
        b'"g":"\\ud83d\\ude42"}'
    )
    op = decode(EVENT % (b"update", columns)).op()
    assert (op.kind, op.table.name, op.table.schema) == (Kind.UPDATE, "test", "")
    assert op.table.columns == tuple("abcdeg")
    assert op.new == ["1.50", "t", "x", None, '[1e400,{"f":false}]', "\U0001f642"]
    assert (op.lsn, op.row_lsn, op.commit_time) == (28317656, 28317656, TIME)
    assert op.old is None


def test_deletes_and_truncates_become_ops() -> None:
    deleted = decode(EVENT % (b"delete", b'{"a":1,"b":null}')).op()
    assert (deleted.kind, deleted.old, deleted.new) == (Kind.DELETE, ["1", None], None)
    truncated = decode(EVENT % (b"truncate", b"{}")).op()
    assert (truncated.kind, truncated.old, truncated.new) == (Kind.TRUNCATE, None, None)


def test_a_record_without_a_uuid_or_with_more_fields_is_one() -> None:
    record = decode(re.sub(rb'"UUID":"[^"]*"', b'"More":[1]', RECORD))
    assert record.uuid is None


def test_numbers_that_no_float_holds_are_read() -> None:
    record = decode(EVENT % (b"insert", b'{"a":1e400,"b":"\\ud800"}'))
    assert record.columns() == {"a": Number("1e400"), "b": "\ud800"}
    assert record.row_lsn == 28317656


@pytest.mark.parametrize(
    "record",
    [
        RECORD.replace(b"28317656", b'"28317656"'),
        RECORD.replace(b"28317656", b"28317656.0"),
        RECORD.replace(b"28317656", b"-1"),
        RECORD.replace(b"28317656", b"true"),
        RECORD.replace(b"28317656", b"18446744073709551616"),
        RECORD.replace(b"28317656", b"1" * 5000),
        RECORD.replace(b'"insert"', b'"upsert"'),
        RECORD.replace(b'"insert"', b"null"),
        RECORD.replace(b'"insert"', b"[]"),
        RECORD.replace(b'"Table":"test"', b'"Table":1e400'),
        RECORD.replace(b'"Table":"test"', b'"Table":null'),
        RECORD.replace(b'"Table":"test"', b'"Table":"\\ud800"'),
        RECORD.replace(b'"Host":"127.0.0.1",', b""),
        RECORD.replace(b'"5bdc360e-91a6-4062-9c7d-94cceabcc7ec"', b"1"),
        RECORD.replace(b'{"a":9007199254740993,"b":null}', b"null"),
        RECORD.replace(b'{"a":9007199254740993,"b":null}', b"[]"),
        RECORD.replace(b"9007199254740993", b"NaN"),
        RECORD.replace(b"9007199254740993", b"[" * 100_000),
        RECORD[:-1],
        b"",
        b"null",
        b"[]",
        b"\xff",
    ],
)
def test_anything_else_is_refused_without_its_values(record: bytes) -> None:
    with pytest.raises(WalstreamError, match="not an event record") as refused:
        decode(record)
    assert "28317656" not in str(refused.value)


def test_a_time_that_is_none_makes_no_op() -> None:
    record = decode(RECORD.replace(b"2026-11-21T", b"soon"))
    with pytest.raises(WalstreamError, match="not an event record: Timestamp"):
        record.op()


def test_columns_nested_too_deep_to_be_read_exactly_are_refused() -> None:
    deep = b"[" * 1000 + b"]" * 1000
    record = decode(RECORD.replace(b"9007199254740993", deep))
    with pytest.raises(WalstreamError, match="not an event record: nested too deep"):
        record.columns()


def test_format_is_registered_by_its_name() -> None:
    encoder = ENCODERS["event"](TABLE, CONTEXT)
    assert encoder.encode(INSERT) == EventEncoder(TABLE, CONTEXT).encode(INSERT)
    assert encoder.truncates
    assert not isinstance(encoder, LineEncoder)
