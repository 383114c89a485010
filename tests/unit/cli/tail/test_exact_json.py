"""JSON whose numbers stay as they are written."""

import pytest

from walstream.cli.tail.content import Json
from walstream.cli.tail.exact_json import (
    columns_of,
    exact,
    fields_of,
    lsn_of,
    number_of,
    rest_of,
    text_of,
    value_of,
)


def test_numbers_stay_as_they_are_written() -> None:
    fields = exact(b'{"a":1.50,"b":123456789012345678901,"c":{"d":[1e3,null]}}')
    assert columns_of(fields) == {
        "a": Json("1.50"),
        "b": Json("123456789012345678901"),
        "c": Json('{"d":[1e3,null]}'),
    }
    assert rest_of(fields, {"a", "b"}).keys() == {"c"}
    assert number_of(fields["a"]) == "1.50"


def test_names_that_come_twice_are_refused() -> None:
    with pytest.raises(ValueError, match="twice"):
        exact(b'{"a":1,"a":2}')


def test_texts_and_null_are_themselves() -> None:
    assert (value_of("1"), value_of(None), value_of(True)) == ("1", None, Json("true"))


@pytest.mark.parametrize("reader", [text_of, fields_of, number_of])
def test_another_type_is_refused(reader: object) -> None:
    assert callable(reader)
    with pytest.raises(TypeError):
        reader([])


@pytest.mark.parametrize("text", ["", "x", "-1", "1.0", "18446744073709551616"])
def test_what_is_no_lsn_is_refused(text: str) -> None:
    assert lsn_of("18446744073709551615") == (1 << 64) - 1
    with pytest.raises(ValueError, match="no LSN"):
        lsn_of(text)
