"""A row's values: texts, NULL, absent, and converted."""

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest

from consumer.values import AbsentColumn, Values
from walstream.op import Table
from walstream.row import OMITTED, UNCHANGED

TABLE = Table("public", "orders", ("id", "total", "note", "big", "old key"))
ROW = Values(TABLE, ["1", "2.50", None, UNCHANGED, OMITTED])
NONE = Values(TABLE, None)


def test_a_value_is_its_text_or_none() -> None:
    assert ROW["id"] == "1"
    assert ROW["note"] is None


@pytest.mark.parametrize("name", ["big", "old key"])
def test_an_absent_column_raises_and_never_looks_like_null(name: str) -> None:
    with pytest.raises(AbsentColumn, match=f"did not send public.orders.{name}"):
        ROW[name]
    with pytest.raises(AbsentColumn):
        ROW.get(name)
    with pytest.raises(KeyError):
        ROW.get(name, Decimal)
    assert name in ROW.absent
    assert name not in ROW
    assert name not in dict(ROW.items())


def test_the_message_of_an_absent_column_is_readable() -> None:
    with pytest.raises(AbsentColumn) as caught:
        ROW["big"]
    assert str(caught.value).startswith("PostgreSQL did not send public.orders.big")
    assert "REPLICA IDENTITY FULL" in str(caught.value)


def test_an_unknown_column_raises() -> None:
    with pytest.raises(KeyError, match=r"orders has no column nope"):
        ROW["nope"]
    with pytest.raises(KeyError):
        ROW.get("nope")


def test_a_default_stands_for_absent_and_unknown_never_for_null() -> None:
    assert ROW.get("big", default="d") == "d"
    assert ROW.get("nope", int, default=0) == 0
    assert ROW.get("note", default="d") is None
    assert ROW.get("id", int, default=0) == 1


def test_it_reads_as_a_mapping_of_what_was_sent() -> None:
    assert dict(ROW.items()) == {"id": "1", "total": "2.50", "note": None}
    assert list(ROW) == ROW.keys() == ["id", "total", "note"]
    assert ROW.values() == ["1", "2.50", None]
    assert len(ROW) == 3
    assert ROW.columns == TABLE.columns


def test_a_row_that_was_not_sent_is_empty_and_false() -> None:
    assert not NONE
    assert NONE.absent == set(TABLE.columns)
    with pytest.raises(AbsentColumn, match="no such row"):
        NONE["id"]


def test_rows_are_compared_by_content() -> None:
    assert Values(TABLE, list("abcde")) == Values(TABLE, list("abcde"))
    assert Values(TABLE, list("abcde")) != ROW
    assert ROW != "abcde"


def test_values_convert_on_request() -> None:
    assert ROW.get("total", Decimal) == Decimal("2.50")
    assert ROW.get("note", Decimal) is None


def test_a_value_that_does_not_fit_names_the_column_and_not_the_value() -> None:
    for kind in (int, dict, bytes):
        with pytest.raises(ValueError, match=r"public\.orders\.total") as caught:
            ROW.get("total", kind)
        assert "2.50" not in str(caught.value)
        assert caught.value.__context__ is None
        assert kind.__name__ in str(caught.value)


def test_no_value_shows_in_a_repr() -> None:
    assert repr(ROW) == "<public.orders: id, total, note>"


@dataclass
class Order:
    id: int
    total: Decimal | None
    note: str | None
    big: str = "unknown"
    other: list[int] = field(default_factory=list)
    made: str = field(init=False, default="here")


def test_a_dataclass_is_made_by_names_and_annotations() -> None:
    assert ROW.into(Order) == Order(1, Decimal("2.50"), None)
    assert ROW.into(Order).other == []


def test_a_field_may_name_another_column() -> None:
    @dataclass
    class Renamed:
        amount: Decimal = field(metadata={"column": "total"})

    assert ROW.into(Renamed).amount == Decimal("2.50")


def test_a_field_without_a_default_needs_its_column() -> None:
    @dataclass
    class Wide:
        big: str

    @dataclass
    class Wrong:
        nope: str

    with pytest.raises(AbsentColumn):
        ROW.into(Wide)
    with pytest.raises(KeyError, match="no column nope"):
        ROW.into(Wrong)


def test_null_fits_only_an_optional_field() -> None:
    @dataclass
    class Strict:
        note: str = "default"

    with pytest.raises(ValueError, match=r"orders.note is NULL: the field note"):
        ROW.into(Strict)


def test_only_dataclasses_of_known_types_can_be_made() -> None:
    @dataclass
    class Odd:
        id: complex

    for kind in (dict, Odd):
        with pytest.raises(TypeError):
            ROW.into(kind)


def test_types_are_known_to_mypy() -> None:
    """Checked by mypy alone: each name has the type that it is given."""
    text: str | None = ROW.get("id")
    number: int | None = ROW.get("id", int)
    numbers: list[int] | str | None = ROW.get("nope", list[int], default="")
    order: Order = ROW.into(Order)
    found: tuple[Any, ...] = (text, number, numbers, order.id)
    assert found == ("1", 1, "", 1)
