"""Pages are bounded in rows and bytes, and no text stops them."""

import pytest
from sqlalchemy import types
from sqlalchemy.dialects import mysql, postgresql
from sqlalchemy.exc import DBAPIError

from tests.support.servers.sqlite import Lite
from walstream.sources.sql.database.page import (
    PageReader,
    is_narrow,
    is_undecodable,
    text,
    tolerate,
)
from walstream.sources.sql.database.query import rows

KILO = "x" * 1000


@pytest.fixture
def wide(lite: Lite) -> Lite:
    lite.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, note TEXT, data BLOB)")
    return lite


def test_page_ends_after_so_many_bytes(
    wide: Lite, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide.fill("t", ((key, KILO, b"y" * 1000) for key in range(2000)))
    monkeypatch.setattr("walstream.sources.sql.database.page.MOST_BYTES", 600_000)
    with wide.session() as connection:
        sizes = [len(block) for block in rows(connection, wide.look("t"), None, 1999)]
    assert sum(sizes) == 2000
    assert max(sizes) <= 500  # what was fetched when the limit was passed


def test_rows_that_suddenly_are_wide_end_the_page(
    wide: Lite, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide.fill("t", ((key, KILO * (key > 5000), None) for key in range(7000)))
    monkeypatch.setattr("walstream.sources.sql.database.page.MOST_BYTES", 100_000)
    with wide.session() as connection:
        blocks = list(rows(connection, wide.look("t"), None, 6999))
    sizes = [sum(len(row[1]) for row in block) for block in blocks]
    assert sum(map(len, blocks)) == 7000
    assert max(sizes) < 100_000 + 250 * 1000


def test_narrow_rows_come_in_pages_of_ten_thousand(lite: Lite) -> None:
    lite.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INT, s VARCHAR(20))")
    lite.fill("t", ((key, 1, "s") for key in range(25_000)))
    with lite.session() as connection:
        blocks = rows(connection, lite.look("t"), None, 24_999)
        assert [len(block) for block in blocks] == [10_000, 10_000, 5000]


def test_page_that_is_full_to_the_last_row_is_not_the_last(lite: Lite) -> None:
    lite.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    lite.fill("t", ((key,) for key in range(4)))
    with lite.session() as connection:
        pages = PageReader(connection, lite.look("t"))
        assert pages.read([], 4) == ([(0,), (1,), (2,), (3,)], False)
        assert pages.read([], 5) == ([(0,), (1,), (2,), (3,)], True)


def test_text_that_is_no_utf8_is_read_with_its_bytes_spelt_out(wide: Lite) -> None:
    wide.execute("INSERT INTO t VALUES (1, 'fine é', x'00')")
    wide.execute("INSERT INTO t VALUES (2, CAST(x'61ff62' AS TEXT), NULL)")
    with wide.session() as connection:
        (block,) = rows(connection, wide.look("t"), None, 9)
    assert block == [(1, "fine é", b"\x00"), (2, r"a\xffb", None)]


@pytest.mark.parametrize(
    ("kind", "narrow"),
    [
        (types.BigInteger(), True),
        (types.Numeric(65, 30), True),
        (types.DateTime(), True),
        (mysql.VARCHAR(40), True),
        (postgresql.UUID(), True),
        (types.String(4000), False),
        (types.String(), False),
        (types.Text(), False),
        (types.LargeBinary(), False),
        (types.JSON(), False),
        (types.NullType(), False),
        (postgresql.ARRAY(types.Integer()), False),
    ],
    ids=repr,
)
def test_type_is_narrow_where_no_value_is_large(
    kind: "types.TypeEngine[object]", narrow: bool
) -> None:
    assert is_narrow(kind) is narrow


def test_bytes_that_are_no_utf8_are_spelt_out() -> None:
    assert text("é😀".encode()) == "é😀"
    assert text(b"a\xffb\xed\xa0\x80") == r"a\xffb\xed\xa0\x80"


def test_codec_for_drivers_decodes_everything_and_encodes_as_utf8() -> None:
    assert b"a\xff".decode("walstream_utf8") == r"a\xff"
    assert "é".encode("walstream_utf8") == "é".encode()
    with pytest.raises(LookupError):
        b"a".decode("walstream_other")


def test_refusal_to_decode_is_recognised() -> None:
    error = UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")
    assert is_undecodable(error)
    assert is_undecodable(DBAPIError("SELECT", {}, error))
    assert not is_undecodable(ValueError("x"))


def test_session_is_made_tolerant_once(lite: Lite) -> None:
    with lite.session() as connection:
        assert tolerate(connection)
        assert not tolerate(connection)
