"""What the demo counts inside of PostgreSQL: all that was committed, and no more."""

from collections import Counter

import pytest

from tests.support.deadline import wait_until
from tests.support.fixtures.postgres import Database
from walstream.cli.demo import shop
from walstream.cli.demo.load import Load
from walstream.cli.demo.tally import DemoChange
from walstream.cli.demo.workload import Trade
from walstream.errors import WalstreamError
from walstream.postgres.connection import session

VIEW = "shop.page_views"
VIEWED_AT = "2026-01-05 00:00:00+00"
MOVE_VIEW = "UPDATE shop.page_views SET viewed_at = viewed_at + interval '31 days'"
INSERT_VIEW = f"INSERT INTO {VIEW} VALUES (1, '{VIEWED_AT}', '/', NULL)"  # noqa: S608 - constants


def written(database: Database, *statements: str) -> Counter[DemoChange]:
    with session(database.dsn) as connection:
        shop.create(connection)
        for statement in statements:
            connection.execute(statement)
        return shop.written(connection)


def test_update_of_a_key_counts_as_delete_and_insert(database: Database) -> None:
    assert written(
        database,
        "INSERT INTO shop.products VALUES ('A', 'lamp', 1, 1, NULL)",
        "UPDATE shop.products SET stock = 2",
        "UPDATE shop.products SET sku = 'B'",
    ) == Counter(
        {
            DemoChange("shop.products", "Insert", ("A",)): 1,
            DemoChange("shop.products", "Update", ("A",)): 1,
            DemoChange("shop.products", "Delete", ("A",)): 1,
            DemoChange("shop.products", "Insert", ("B",)): 1,
        }
    )


def test_partitions_count_as_their_root_also_when_a_row_moves(
    database: Database,
) -> None:
    moved = "2026-02-05 00:00:00+00"
    assert written(database, INSERT_VIEW, MOVE_VIEW) == Counter(
        {
            DemoChange(VIEW, "Insert", ("1", VIEWED_AT)): 1,
            DemoChange(VIEW, "Delete", ("1", VIEWED_AT)): 1,
            DemoChange(VIEW, "Insert", ("1", moved)): 1,
        }
    )


def test_what_was_rolled_back_does_not_count(database: Database) -> None:
    assert not written(database, "BEGIN", INSERT_VIEW, "ROLLBACK")


def test_contents_are_texts_with_null_apart_from_empty(database: Database) -> None:
    with session(database.dsn) as connection:
        shop.create(connection)
        connection.execute("INSERT INTO shop.products VALUES ('A', '', 1.5, 1, NULL)")
        contents = shop.contents(connection)
    assert contents["shop.products"] == {
        ("A",): {
            "sku": "A",
            "name": "",
            "price": "1.50",
            "stock": "1",
            "description": None,
        }
    }
    assert contents.keys() == set(shop.TABLES)


def test_load_writes_as_many_rows_as_it_says_until_stopped(database: Database) -> None:
    with session(database.dsn) as connection:
        shop.create(connection)
    load = Load(database.dsn, Trade(5), rate=500)
    load.start()
    wait_until(lambda: load.rows > 500, 30, "the load writes")
    load.stop()
    load.check()
    with session(database.dsn) as connection:
        assert shop.written(connection).total() == load.rows
        assert shop.transactions(connection) > 20


def test_load_that_cannot_write_says_so(database: Database) -> None:
    load = Load(database.dsn, Trade(5), rate=500)  # there is no shop
    load.start()
    load.stop()
    with pytest.raises(WalstreamError, match="shop"):
        load.check()
