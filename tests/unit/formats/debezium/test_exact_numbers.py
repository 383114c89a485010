"""A number is read exactly where a float may have rounded it, and only there."""

from decimal import Decimal

import pytest

from walstream.formats.debezium.exact_numbers import exact, may_be_rounded


def test_a_float_of_no_float_column_may_be_rounded() -> None:
    row = {"before": None, "after": {"id": 1, "x": 1.5, "y": "z"}}
    assert may_be_rounded(row, None)
    assert may_be_rounded(row, {"x": {"type": "bytes"}})
    assert not may_be_rounded(row, {"x": {"type": "double"}})
    assert not may_be_rounded({"before": None, "after": {"id": 1}}, None)
    assert may_be_rounded({"before": {"x": [None, 0.1]}, "after": None}, None)
    doubles = {"x": {"type": "array", "items": {"type": "double"}}}
    assert not may_be_rounded({"before": {"x": [0.1]}, "after": None}, doubles)


def test_numbers_of_any_length_are_read() -> None:
    long = "9" * 5000
    found = exact(f'{{"a":1.10,"b":{long},"c":7}}'.encode())
    assert str(found["a"]) == "1.10"
    assert found["b"] == Decimal(long)
    assert found["c"] == 7


@pytest.mark.parametrize("written", ["1e-200000", "1e-99999999999999999999"])
def test_what_no_numeric_can_be_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match="as long"):
        exact(f"[{written}]".encode())
