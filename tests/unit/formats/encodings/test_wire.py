"""The head of a record that has a schema's id."""

import pytest

from walstream.formats.encodings.wire import head, schema_id


@pytest.mark.parametrize("number", [0, 1, 258, (1 << 32) - 1])
def test_an_id_comes_back(number: int) -> None:
    assert schema_id(head(number)) == schema_id(head(number) + b"x") == number


@pytest.mark.parametrize("record", [None, b"", b"\0\0\0\0", b"{}    ", b"\1\0\0\0\1"])
def test_others_have_none(record: bytes | None) -> None:
    assert schema_id(record) is None
