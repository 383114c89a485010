"""The literal records of docs/formats.md, both ways."""

import pytest

from walstream.errors import WalstreamError
from walstream.formats import ENCODERS, LineEncoder
from walstream.formats.context import Context
from walstream.formats.op import OpEncoder, decode
from walstream.op import Kind, ReplicationOp, Table
from walstream.row import OMITTED, UNCHANGED, NotSent, Row

INVENTORY = Table(
    "public", "inventory_table", ("id", "organization_id", "note"), key=(0,)
)
T = Table("public", "t", ("id", "n", "v"), key=(0,))
S_T = Table("s", "t", ("id", "n", "v"), key=(0,))
LSN = 28318112

VECTORS = [
    (
        (
            b'{"table_name":"inventory_table","col_names":["id","organization_id","note"],'
            b'"lsn":28318112,"seq_id":0,"op":{"Insert":["1","9",null]}}'
        ),
        ReplicationOp(Kind.INSERT, INVENTORY, LSN, 0, new=["1", "9", None]),
    ),
    (
        '{"table_name":"inventory_table","col_names":["id","organization_id","note"],'
        '"lsn":28318112,"seq_id":1,"op":{"Update":[["1","9",null],'
        r'["1","9","hé\"llo\n"]]}}'.encode(),
        ReplicationOp(
            Kind.UPDATE,
            INVENTORY,
            LSN,
            1,
            old=["1", "9", None],
            new=["1", "9", 'hé"llo\n'],
        ),
    ),
    (
        (
            b'{"table_name":"inventory_table","col_names":["id","organization_id","note"],'
            b'"lsn":28318112,"seq_id":2,"op":{"Delete":["1","9","t"]}}'
        ),
        ReplicationOp(Kind.DELETE, INVENTORY, LSN, 2, old=["1", "9", "t"]),
    ),
    (
        (
            b'{"table_name":"t","col_names":["id","n","v"],"lsn":28318112,"seq_id":0,'
            b'"op":{"Update":[null,["1","1",null]]},"absent":{"new":["v"]}}'
        ),
        ReplicationOp(Kind.UPDATE, T, LSN, 0, new=["1", "1", UNCHANGED], absent=True),
    ),
    (
        (
            b'{"table_name":"t","col_names":["id","n","v"],"lsn":28318112,"seq_id":1,'
            b'"op":{"Delete":["1",null,null]},"absent":{"old":["n","v"]}}'
        ),
        ReplicationOp(Kind.DELETE, T, LSN, 1, old=["1", OMITTED, OMITTED], absent=True),
    ),
    (
        (
            b'{"table_name":"t","col_names":["id","n","v"],"lsn":28318112,"seq_id":2,'
            b'"op":"Truncate","schema":"s","partitions":4}'
        ),
        ReplicationOp(Kind.TRUNCATE, S_T, LSN, 2, partitions=4),
    ),
    (
        (
            b'{"table_name":"t","col_names":["id","n","v"],"lsn":28318000,'
            b'"seq_id":4294967303,"op":{"Insert":["1","1","x"]},"schema":"s",'
            b'"snapshot":true}'
        ),
        ReplicationOp(
            Kind.INSERT, S_T, 28318000, 2**32 + 7, new=["1", "1", "x"], snapshot=True
        ),
    ),
]
KINDS = ["insert", "update", "delete", "absent new", "absent old", "truncate", "snap"]


def readable(row: Row | None) -> Row | None:
    """Make an absent value what a reader takes it for: it cannot know why."""
    if row is None:
        return None
    return [OMITTED if isinstance(value, NotSent) else value for value in row]


@pytest.mark.parametrize(("record", "op"), VECTORS, ids=KINDS)
def test_op_encodes_to_its_record(record: bytes, op: ReplicationOp) -> None:
    assert OpEncoder(op.table).encode(op) == record


@pytest.mark.parametrize(("record", "op"), VECTORS, ids=KINDS)
def test_record_decodes_to_its_op(record: bytes, op: ReplicationOp) -> None:
    read = decode(record)
    found = (read.table.schema, read.table.name, read.table.columns)
    assert found == (op.table.schema, op.table.name, op.table.columns)
    assert (read.kind, read.lsn, read.seq_id) == (op.kind, op.lsn, op.seq_id)
    assert (read.old, read.new) == (readable(op.old), readable(op.new))
    assert (read.absent, read.snapshot) == (op.absent, op.snapshot)
    assert read.partitions == op.partitions


@pytest.mark.parametrize(("record", "op"), VECTORS[:3], ids=KINDS[:3])
def test_fast_and_rare_path_agree(record: bytes, op: ReplicationOp) -> None:
    """The rare path is taken for an op that says it has absent values."""
    op = ReplicationOp(
        op.kind, op.table, op.lsn, op.seq_id, op.old, op.new, absent=True
    )
    assert OpEncoder(op.table).encode(op) == record


def test_lsn_of_64_bits_stays_exact() -> None:
    op = ReplicationOp(Kind.INSERT, T, 2**64 - 1, 0, new=["1", "2", "3"])
    record = OpEncoder(T).encode(op)
    assert b'"lsn":18446744073709551615,' in record
    assert decode(record).lsn == 2**64 - 1


def test_only_quotes_backslashes_and_control_characters_are_escaped() -> None:
    op = ReplicationOp(Kind.INSERT, T, 1, 0, new=["\x00\x1f\x7f", "/<é\u2028", '\\"'])
    record = OpEncoder(T).encode(op)
    assert '["\\u0000\\u001f\x7f","/<é\u2028","\\\\\\""]'.encode() in record


def test_absent_names_only_halves_that_have_some() -> None:
    op = ReplicationOp(
        Kind.UPDATE,
        T,
        1,
        0,
        old=["1", OMITTED, OMITTED],
        new=["1", "2", "3"],
        absent=True,
    )
    assert b'"absent":{"old":["n","v"]}}' in OpEncoder(T).encode(op)


def test_deletes_by_turns_name_what_each_of_them_lacks() -> None:
    rows: list[Row] = [
        ["1", OMITTED, OMITTED],
        ["1", "2", OMITTED],
        ["1", None, "3"],
        ["1", OMITTED, OMITTED],
    ]
    encoder = OpEncoder(T)
    for lsn, row in enumerate([*rows, *reversed(rows)]):
        op = ReplicationOp(Kind.DELETE, T, lsn, lsn, row, absent=True)
        value = encoder.encode(op)
        assert value == OpEncoder(T).encode(op)
        assert readable(decode(value).old) == readable(row)
    moved = ReplicationOp(Kind.DELETE, T, 1, 0, rows[0], ["1", UNCHANGED, "3"], True)
    assert b'"absent":{"old":["n","v"],"new":["n"]}' in encoder.encode(moved)
    nothing = Table("public", "t", ())
    op = ReplicationOp(Kind.DELETE, nothing, 1, 0, [], absent=True)
    assert OpEncoder(nothing).encode(op).endswith(b'"op":{"Delete":[]}}')


def test_hostile_names_are_escaped() -> None:
    table = Table('s"', 't\\"', ('a"\n',))
    record = OpEncoder(table).encode(ReplicationOp(Kind.INSERT, table, 1, 0, new=[""]))
    assert decode(record).table.columns == ('a"\n',)
    assert decode(record).table.full_name == 's".t\\"'


def test_reader_ignores_unknown_fields() -> None:
    record = b'{"more":1,' + VECTORS[0][0][1:]
    assert decode(record).new == ["1", "9", None]


@pytest.mark.parametrize(
    "record",
    [
        VECTORS[0][0].replace(b"28318112", b'"28318112"'),
        VECTORS[0][0].replace(b"28318112", b"28318112.0"),
        VECTORS[0][0].replace(b"28318112", b"true"),
        VECTORS[0][0].replace(b"28318112", b"-1"),
        VECTORS[0][0].replace(b"null]", b"null,null]"),
        VECTORS[0][0].replace(b'["1","9",null]', b"null"),
        VECTORS[0][0].replace(b'["1","9",null]', b'"abc"'),
        VECTORS[0][0].replace(b"Insert", b"Upsert"),
        VECTORS[0][0].replace(b"Insert", b"Truncate"),
        VECTORS[0][0].replace(b'{"Insert":["1","9",null]}', b'"Insert"'),
        VECTORS[0][0].replace(b'{"Insert":["1","9",null]}', b"{}"),
        VECTORS[0][0].replace(b'"seq_id":0,', b""),
        VECTORS[1][0].replace(b'[["1","9",null],', b"["),
        VECTORS[2][0].replace(b'["1","9","t"]', b"null"),
        VECTORS[3][0].replace(b'{"new":["v"]}', b"[]"),
        VECTORS[0][0].replace(b'"9"', b"9"),
        VECTORS[0][0].replace(b'"9"', b'["9"]'),
        VECTORS[0][0].replace(b'"9"', b"true"),
        VECTORS[2][0].replace(b'"9"', b"9"),
        VECTORS[0][0].replace(b'"table_name":"inventory_table"', b'"table_name":7'),
        VECTORS[0][0].replace(b'"note"]', b"7]"),
        VECTORS[0][0].replace(b'["id","organization_id","note"]', b'"abc"'),
        VECTORS[0][0].replace(b'"seq_id":0', b'"seq_id":18446744073709551616'),
        VECTORS[0][0].replace(b":28318112", b":18446744073709551616"),
        VECTORS[3][0].replace(b'["v"]', b'"v"'),
        VECTORS[3][0].replace(b'["v"]', b"[{}]"),
        VECTORS[5][0].replace(b'"schema":"s"', b'"schema":null'),
        VECTORS[5][0].replace(b'"partitions":4', b'"partitions":"4"'),
        VECTORS[5][0].replace(b'"partitions":4', b'"partitions":-1'),
        VECTORS[5][0].replace(b'"partitions":4', b'"partitions":100001'),
        VECTORS[6][0].replace(b'"snapshot":true', b'"snapshot":1'),
        VECTORS[0][0].replace(b'"seq_id":0', b'"seq_id":-1'),
        VECTORS[5][0].replace(b'["id","n","v"]', b'["id",7,"v"]'),
        VECTORS[0][0][:-1],
        b"",
        b"null",
        b"[]",
        b"\xff",
    ],
)
def test_anything_else_is_refused_without_its_values(record: bytes) -> None:
    with pytest.raises(WalstreamError, match="not an op record") as refused:
        decode(record)
    assert "28318112" not in str(refused.value)


def test_format_is_registered_by_its_name() -> None:
    encoder = ENCODERS["op"](T, Context())
    assert isinstance(encoder, OpEncoder)
    assert isinstance(encoder, LineEncoder)
    assert encoder.truncates
    assert list(encoder.texts) == [0, 1, 2]


def test_a_row_of_before_may_lack_a_value() -> None:
    row: Row = ["1", OMITTED, "x"]
    op = ReplicationOp(Kind.INSERT, T, 5, 2**32, new=row, absent=True, snapshot=True)
    record = OpEncoder(T).encode(op)
    assert record.endswith(
        b'{"Insert":["1",null,"x"]},"snapshot":true,"absent":{"new":["n"]}}'
    )
    assert decode(record).new == row


def test_a_truncate_of_before_is_one() -> None:
    op = ReplicationOp(Kind.TRUNCATE, T, 5, 2**32, partitions=4, snapshot=True)
    record = OpEncoder(T).encode(op)
    assert record.endswith(b'"op":"Truncate","snapshot":true,"partitions":4}')


def test_as_many_partitions_as_kafka_bears_are_read() -> None:
    record = VECTORS[5][0].replace(b'"partitions":4', b'"partitions":100000')
    assert decode(record).partitions == 100_000


ONE = Table("public", "t", ("v",))
COPIED = [(b"a b", "a b"), (b"N", "N"), (rb"\N", None), (b"", ""), (b"\xc3\xa9%", "é%")]


@pytest.mark.parametrize(
    "line", [rb"\\", rb"\\N", rb"\v", rb"a\\b", b'"', b"\x01", rb"\N\\"]
)
def test_a_line_whose_values_have_to_be_looked_at_is_not_encoded(line: bytes) -> None:
    assert OpEncoder(ONE).encode_lines(line + b"\n", 5, 2**32) is None


def test_lines_of_a_table_without_columns_are_not_encoded() -> None:
    assert OpEncoder(Table("public", "t", ())).encode_lines(b"\n", 5, 0) is None


@pytest.mark.parametrize(("line", "value"), COPIED)
def test_any_other_line_is_encoded_as_its_row(line: bytes, value: str | None) -> None:
    table = Table("s%d", "t%b", ("a%",))
    op = ReplicationOp(Kind.INSERT, table, 5, 2**32, new=[value], snapshot=True)
    encoded = OpEncoder(table).encode_lines(line + b"\n", 5, 2**32)
    assert encoded == [OpEncoder(table).encode(op)]


def test_lines_that_are_no_unicode_are_refused() -> None:
    with pytest.raises(UnicodeDecodeError):
        OpEncoder(ONE).encode_lines(b"\xff\n", 5, 0)
