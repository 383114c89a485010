"""Types that no option changes."""

import pytest

from walstream.formats.debezium.connect_type import (
    BY_NAME,
    BY_OID,
    boolean,
    decimal,
    integer,
)


def test_integers_stay_as_they_are() -> None:
    for text in ("0", "-1", "9223372036854775807"):
        assert integer(text) == text


@pytest.mark.parametrize(
    "text", ["", "-", "1.5", "x", "\u0661", "--1", " 1", "1e3", "+1"]
)
def test_other_texts_are_no_integers(text: str) -> None:
    with pytest.raises(ValueError, match="not an integer"):
        integer(text)


def test_booleans_are_two_texts() -> None:
    assert [boolean("t"), boolean("f")] == ["true", "false"]
    with pytest.raises(ValueError, match="not a boolean"):
        boolean("true")


def test_money_has_no_precision() -> None:
    assert decimal(2).parameters == (("scale", "2"),)
    assert decimal(-2, 3).parameters[1] == ("connect.decimal.precision", "3")


def test_what_stands_for_an_unsent_value_is_json_of_the_schema() -> None:
    for found in (*BY_OID.values(), *BY_NAME.values()):
        first = {"string": '"', "struct": "{", "array": "[", "boolean": "f"}
        assert found.empty.startswith(first.get(found.schema.type, "0"))


def test_only_texts_are_texts() -> None:
    texts = {oid for oid, found in BY_OID.items() if found.text}
    assert {25, 1043, 114, 2950} < texts
    assert not texts & {16, 20, 21, 23, 26, 600, 700, 701, 1266}
