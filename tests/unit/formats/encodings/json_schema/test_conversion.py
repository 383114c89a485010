"""Values of Confluent's converter become those of Kafka's, where they differ."""

from decimal import Decimal
from typing import Any

import pytest

from walstream.formats.debezium.numeric import base64
from walstream.formats.encodings.json_schema import conversion


def test_objects_of_key_and_value_are_pairs() -> None:
    told = [{"key": 1, "value": 1.5}, {"key": 3, "value": 2.0}]
    read = conversion.pairs(None, str, named=False)
    assert read(told) == [[1, "1.5"], [3, "2.0"]]
    named = [{"key": "a", "value": None}]
    assert conversion.pairs(None, None, named=True)(named) == {"a": None}


@pytest.mark.parametrize("value", [None, 3, [1], [{"key": 1}], {"key": 1, "value": 2}])
def test_what_is_no_list_of_them_stays(value: Any) -> None:
    assert conversion.pairs(None, None, named=False)(value) == value


@pytest.mark.parametrize(
    ("scale", "value", "read"),
    [
        (2, Decimal("1.5"), "AJY="),
        (2, 1, "ZA=="),
        (2, Decimal("-0.01"), "/w=="),
        (0, Decimal(12), "DA=="),
        (-2, Decimal(100), "AQ=="),
        (20, Decimal("1.00000000000000000001"), "BWvHXi1jEAAB"),
        (2, Decimal("1" * 40 + ".25"), base64(int("1" * 40 + "25"))),  # no 28 digits
        (0, int("-" + "9" * 35), base64(int("-" + "9" * 35))),
        (2, Decimal("1.500"), "AJY="),
        (2, Decimal("0.000"), "AA=="),
        (2, Decimal("1.505"), Decimal("1.505")),  # more decimals than it may have
        (2, "AJY=", "AJY="),
        (2, True, True),
        (2, Decimal("1E+999999"), Decimal("1E+999999")),
    ],
)
def test_a_number_becomes_its_bytes(scale: int, value: Any, read: Any) -> None:
    assert conversion.decimal(scale)(value) == read


def test_what_holds_others_converts_them_and_leaves_other_shapes() -> None:
    fields = conversion.struct({"a": str})
    assert fields({"a": 1, "b": 2}) == {"a": "1", "b": 2}
    assert fields([1]) == [1]
    assert conversion.array(str)([1, 2]) == ["1", "2"]
    assert conversion.array(str)(1) == 1
    assert conversion.mapping(str)({"a": 1}) == {"a": "1"}
    assert conversion.mapping(str)(1) == 1
    assert conversion.optional(str)(None) is None
    assert conversion.optional(str)(1) == "1"


def test_numbers_are_those_that_json_can_be_written_of() -> None:
    told = {
        "a": [Decimal("1.5"), 1 << 63],
        "b": 1 << 64,
        "c": -(1 << 63) - 1,
        "d": True,
    }
    assert conversion.floats(told) == {
        "a": [1.5, 1 << 63],
        "b": 2.0**64,
        "c": -(2.0**63),
        "d": True,
    }
