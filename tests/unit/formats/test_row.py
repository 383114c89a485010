"""The format `row`: its vectors, and what is none."""

import json
import math
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

import pytest

from walstream.errors import WalstreamError
from walstream.formats.row import RowEncoder, decode, key, row_hash

RECORD: Final = (
    rb'{"timestamp":1795242889.1057744,"name":"processes","table":"processes",'
    rb'"data":{"id":3,"pid":30,"name":"n3","user":"root","command":"/bin/\u00e9"},'
    rb'"hash":"a6c4b600c43857fa266e01921d439f10ac613c140db4b525f5747ea94a3f47fd"}'
)
AT: Final = 1795242889.1057744
VALUES: Final = [3, 30, "n3", "root", "/bin/é"]
NESTED: Final = {"a": [1, {"é": math.nan}]}


def processes() -> RowEncoder:
    columns = ["id", "pid", "name", "user", "command"]
    return RowEncoder("processes", "processes", columns)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (
            {"a": 1, "b": None},
            "0c6b73e7b48e199ae73fa63c9220b7027a756e4a76995d767d9cf6fe0fbf6e88",
        ),
        (
            {"t": True, "n": 1.5, "s": "é"},
            "ab5d1f88ce8ce92acc90ede254da7f3ff9f6eeaae4df1162c8976b165fd793da",
        ),
        ({}, "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"),
    ],
)
def test_data_hash_as_the_format_says(data: dict[str, Any], expected: str) -> None:
    assert row_hash(data) == expected
    record = RowEncoder("n", "t", list(data)).encode([list(data.values())], 1.0)
    assert decode(record[0]).hash == expected


def test_the_record_comes_out_byte_for_byte() -> None:
    assert processes()(VALUES, AT) == RECORD


def test_the_record_reads_back() -> None:
    row = decode(RECORD)
    assert (row.timestamp, row.name, row.table) == (AT, "processes", "processes")
    assert list(row.data.items()) == list(
        {"id": 3, "pid": 30, "name": "n3", "user": "root", "command": "/bin/é"}.items()
    )
    assert row.hash == row_hash(row.data)
    assert decode(RECORD.decode()) == row


def test_rows_come_out_alike_alone_and_among_others() -> None:
    rows: list[list[Any]] = [
        VALUES,
        [1, None, True, "\0\1,\n", '"%s"'],
        [2, 1.5, Decimal("1.50"), datetime(2026, 1, 2), b"x"],  # noqa: DTZ001
        [3, [], {}, [1], "one of each"],
    ]
    odd: list[list[Any]] = [
        [4, NESTED, "nested", 1, 2],
        [5, math.inf, -math.inf, [1, 2], {1: 2}],
        [6, {"one": 1}, "x", (), set()],
    ]
    encoder = processes()
    for several in (rows, rows + odd, odd):
        assert encoder.encode(several, AT) == [encoder(row, AT) for row in several]
    for record in encoder.encode(rows + odd, AT):
        row = decode(record)
        assert row.hash == row_hash(row.data)
    assert encoder.encode([], AT) == []


def test_nested_values_keep_their_shape() -> None:
    assert decode(processes()([1, NESTED, 3, 4, 5], AT)).data["pid"] == {
        "a": [1, {"é": "NaN"}]
    }


def test_hostile_names_are_escaped() -> None:
    columns = ['%s"', "%(a)s", "é\n", "{0}", "\ud800"]
    for values in (range(5), [*range(4), [1, 2]]):
        row = decode(RowEncoder('n"%d', "t%é", columns)(list(values), 0.0))
        assert (row.name, row.table) == ('n"%d', "t%é")
        assert dict(row.data) == dict(zip(columns, values, strict=True))


def test_a_row_of_another_width_is_a_defect() -> None:
    encoder = RowEncoder("n", "t", ["a", "b"])
    for rows in ([[1]], [[1, 2, 3], [4]]):
        with pytest.raises(ValueError, match="another query"):
            encoder.encode(rows, AT)
    with pytest.raises(ValueError, match="one name"):
        RowEncoder("n", "t", ["a", "a"])


def test_a_key_is_an_array_of_its_text() -> None:
    assert key(3) == b'["3"]'
    assert key(-(2**70)) == b'["-1180591620717411303424"]'


def test_reader_ignores_unknown_fields() -> None:
    assert decode(b'{"more":[],' + RECORD[1:]) == decode(RECORD)


def test_no_value_shows_in_a_repr() -> None:
    assert "root" not in repr(decode(RECORD))


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"\xff",
        b"null",
        b"[]",
        b"{}",
        b"[" * 100_000,
        RECORD[:-1],
        RECORD + b"x",
        RECORD.replace(b'"name":"processes"', b'"name":7'),
        RECORD.replace(b'"table":"processes"', b'"table":null'),
        RECORD.replace(b'"hash":"', b'"hush":"'),
        RECORD.replace(b"1795242889.1057744", b'"1795242889"'),
        RECORD.replace(b"1795242889.1057744", b"true"),
        RECORD.replace(b"1795242889.1057744", b"-1"),
        RECORD.replace(b"1795242889.1057744", b"1" * 400),
        RECORD.replace(b"1795242889.1057744", b"NaN"),
        RECORD.replace(b"1795242889.1057744", b"1e999"),
        RECORD.replace(b":30,", b":NaN,"),
        RECORD.replace(b":30,", b":1e999,"),
        RECORD.replace(b":30,", b":" + b"3" * 5000 + b","),
        json.dumps({**json.loads(RECORD), "data": [1]}).encode(),
        json.dumps({**json.loads(RECORD), "data": "x"}).encode(),
    ],
)
def test_anything_else_is_refused_without_its_values(record: bytes) -> None:
    with pytest.raises(WalstreamError, match="not a row record") as refused:
        decode(record)
    assert "root" not in str(refused.value)
