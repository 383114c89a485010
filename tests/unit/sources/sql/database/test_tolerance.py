"""Text that is no UTF-8."""

import pytest
from sqlalchemy.exc import DBAPIError

from tests.lite import Lite
from walstream.sources.sql.database.tolerance import is_undecodable, text, tolerate


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
