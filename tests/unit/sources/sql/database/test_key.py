"""Which keys are fit to poll by, in SQLite."""

from decimal import Decimal

import pytest
from sqlalchemy import types
from sqlalchemy.types import BigInteger

from tests.support.servers.sqlite import Lite
from walstream.errors import ConfigError
from walstream.sources.sql.database.key import ascending, is_whole, whole, wholes
from walstream.sources.sql.database.shape import SqlColumn, SqlTableShape


@pytest.mark.parametrize(
    "table",
    [
        "(id INTEGER PRIMARY KEY)",
        "(id integer primary key autoincrement)",
        "(id BIGINT NOT NULL PRIMARY KEY)",
        "(id INT NOT NULL UNIQUE, other INTEGER PRIMARY KEY)",
        "(id INT NOT NULL, CONSTRAINT x UNIQUE (id))",
        "(id NUMERIC(20, 0) NOT NULL PRIMARY KEY)",
        "(id INT PRIMARY KEY NOT NULL) WITHOUT ROWID",
    ],
)
def test_unique_integer_that_is_never_null_is_fit(lite: Lite, table: str) -> None:
    lite.execute(f"CREATE TABLE t {table}")
    assert lite.look("t").key.name == "id"


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("(id TEXT PRIMARY KEY)", r"is not an integer \(its type is TEXT\)"),
        ("(id REAL PRIMARY KEY)", "is not an integer"),
        ("(id NUMERIC(9, 2) PRIMARY KEY)", "is not an integer"),
        ("(id NUMERIC PRIMARY KEY)", "is not an integer"),
        ("(id BOOLEAN PRIMARY KEY)", "is not an integer"),
        ("(id INT PRIMARY KEY)", "may be null"),
        ("(id INT UNIQUE)", "may be null"),
        ("(id INT NOT NULL)", "is not unique"),
        ("(id INT NOT NULL, b INT, PRIMARY KEY (id, b))", "is not unique"),
        ("(id INT NOT NULL, b INT, UNIQUE (b, id))", "is not unique"),
    ],
)
def test_other_keys_are_refused_in_one_line(lite: Lite, table: str, said: str) -> None:
    lite.execute(f"CREATE TABLE t {table}")
    with pytest.raises(ConfigError, match=f"table t: the key id .*{said}") as caught:
        lite.look("t")
    assert caught.value.hint


def test_index_over_some_rows_or_an_expression_makes_nothing_unique(lite: Lite) -> None:
    lite.execute("CREATE TABLE t (id INT NOT NULL)")
    lite.execute("CREATE UNIQUE INDEX part ON t (id) WHERE id > 5")
    lite.execute("CREATE UNIQUE INDEX made ON t (id + 1)")
    lite.execute("CREATE INDEX plain ON t (id)")
    with pytest.raises(ConfigError, match="is not unique"):
        lite.look("t")
    lite.execute("CREATE UNIQUE INDEX whole ON t (id)")
    assert lite.look("t").key.name == "id"


def test_key_of_a_view_is_refused(lite: Lite) -> None:
    lite.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    lite.execute("CREATE VIEW v AS SELECT id FROM t")
    with pytest.raises(ConfigError, match="to a view"):
        lite.look("v")


def test_domain_is_judged_by_the_type_under_it() -> None:
    class Domain(types.TypeEngine[int]):
        data_type = types.BigInteger()

    assert is_whole(Domain())
    assert not is_whole(types.Float())
    assert not is_whole(types.Numeric())
    assert not is_whole(types.NullType())


ID = SqlColumn("id", "BIGINT", BigInteger())
SHAPE = SqlTableShape("shop.orders", "shop", "orders", ID, (ID,))


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
    with pytest.raises(ConfigError, match=r"shop\.orders: the key id has") as caught:
        wholes([1, value], SHAPE)
    assert "7" not in str(caught.value)


@pytest.mark.parametrize(("keys", "after"), [([1, 1], None), ([2, 1], 0), ([5], 5)])
def test_keys_that_do_not_ascend_are_refused(
    keys: list[int], after: int | None
) -> None:
    assert ascending([1, 2, 9], 0, SHAPE) == [1, 2, 9]
    with pytest.raises(ConfigError, match="the key id is not unique"):
        ascending(keys, after, SHAPE)
