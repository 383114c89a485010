"""Looking at tables of SQLite."""

import pytest

from tests.support.servers.sqlite import Lite
from walstream.errors import ConfigError


def test_without_fields_all_columns_are_taken_in_their_order(lite: Lite) -> None:
    lite.execute("CREATE TABLE t (name TEXT, id INTEGER PRIMARY KEY, at DATETIME)")
    shape = lite.look("t")
    assert shape.names == ("name", "id", "at")
    assert [one.kind for one in shape.columns] == ["TEXT", "INTEGER", "DATETIME"]
    assert (shape.schema, shape.table, shape.key.name) == ("", "t", "id")


def test_key_comes_first_where_it_is_not_among_the_fields(lite: Lite) -> None:
    lite.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a INT, b INT)")
    assert lite.look("t", "id", "b", "a").names == ("id", "b", "a")
    assert lite.look("t", "id", "b", "id").names == ("b", "id")


def test_table_of_an_unheard_of_type_and_a_generated_column_is_read(lite: Lite) -> None:
    lite.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a SOMETHING, twice AS (id * 2))"
    )
    assert lite.look("t").names == ("id", "a", "twice")


def test_names_of_any_kind_work(lite: Lite) -> None:
    lite.execute(
        """CREATE TABLE "We.ird ""t"" %s :x é" ("I.d '%(x)s'" INTEGER PRIMARY KEY,
        "SELECT" INT, ":p" INT)"""
    )
    shape = lite.look('We.ird "t" %s :x é', "I.d '%(x)s'")
    assert shape.names == ("I.d '%(x)s'", "SELECT", ":p")


def test_part_before_a_dot_is_the_schema_where_there_is_one(lite: Lite) -> None:
    lite.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    lite.execute('CREATE TABLE "a.b" (id INTEGER PRIMARY KEY)')
    found = [lite.look(name) for name in ("main.t", "a.b", "main.a.b")]
    assert [(one.schema, one.table) for one in found] == [
        ("main", "t"),
        ("", "a.b"),
        ("main", "a.b"),
    ]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("order", "there is no table order: did you mean orders"),
        ("main.order", "did you mean main.orders"),
        ("xyzzy", "there is no table xyzzy"),
        ("nosuch.orders", "there is no table nosuch.orders: did you mean orders"),
    ],
)
def test_missing_table_is_named_with_those_that_are_near(
    lite: Lite, name: str, said: str
) -> None:
    lite.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    with pytest.raises(ConfigError) as caught:
        lite.look(name)
    caught.match(said)
    assert ("did you mean" in str(caught.value)) is ("did you mean" in said)


@pytest.mark.parametrize(
    ("key", "fields", "said"),
    [
        ("ID", (), "has no column ID: did you mean id"),
        ("id", ("nmae",), "has no column nmae: did you mean name"),
        ("id", ("name", "name"), "listed twice"),
        ("none", ("name",), "has no column none"),
    ],
)
def test_missing_column_is_named_with_those_that_are_near(
    lite: Lite, key: str, fields: tuple[str, ...], said: str
) -> None:
    lite.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)")
    with pytest.raises(ConfigError, match=said):
        lite.look("t", key, *fields)
