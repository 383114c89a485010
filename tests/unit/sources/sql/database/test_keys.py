"""Keys as they come: whole numbers, ascending."""

from decimal import Decimal

import pytest
from sqlalchemy.types import BigInteger

from walstream.errors import ConfigError
from walstream.sources.sql.database.keys import ascending, whole, wholes
from walstream.sources.sql.database.shape import Column, Shape

ID = Column("id", "BIGINT", BigInteger())
SHAPE = Shape("shop.orders", "shop", "orders", ID, (ID,))


def test_whole_numbers_are_taken_as_ints() -> None:
    assert wholes([-1, 0, 1 << 64], SHAPE) == [-1, 0, 1 << 64]
    assert wholes([Decimal(7), Decimal("8.0"), 9], SHAPE) == [7, 8, 9]
    assert whole(None, SHAPE) is None


@pytest.mark.parametrize(
    "value",
    [None, "7", b"7", 7.0, True, Decimal("7.5"), Decimal("NaN"), Decimal("Infinity")],
    ids=repr,
)
def test_anything_else_is_refused_without_showing_it(value: object) -> None:
    with pytest.raises(ConfigError, match=r"shop\.orders: the key id holds") as caught:
        wholes([1, value], SHAPE)
    assert "7" not in str(caught.value)


@pytest.mark.parametrize(("keys", "after"), [([1, 1], None), ([2, 1], 0), ([5], 5)])
def test_keys_that_do_not_ascend_are_refused(
    keys: list[int], after: int | None
) -> None:
    assert ascending([1, 2, 9], 0, SHAPE) == [1, 2, 9]
    with pytest.raises(ConfigError, match="the key id is not unique"):
        ascending(keys, after, SHAPE)
