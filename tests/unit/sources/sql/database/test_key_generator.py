"""What gives a table its keys, as SQLite tells it; others need their servers."""

from tests.support.servers.sqlite import Lite
from walstream.sources.sql.database.key_generator import next_key, origin


def test_a_key_that_is_only_a_rowid_tells_nothing(lite: Lite) -> None:
    lite.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    lite.execute("INSERT INTO t VALUES (7)")
    shape = lite.look("t")
    with lite.session() as connection:
        assert next_key(connection, shape) is None
        assert origin(connection, shape) == ""


def test_autoincrement_goes_on_above_what_was_deleted(lite: Lite) -> None:
    lite.execute("CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT)")
    lite.execute("INSERT INTO t VALUES (7)")
    lite.execute("DELETE FROM t")
    shape = lite.look("t")
    with lite.session() as connection:
        assert next_key(connection, shape) == 8
    lite.execute("DELETE FROM sqlite_sequence")
    with lite.session() as connection:
        assert next_key(connection, shape) is None


def test_another_column_than_the_one_that_is_counted_tells_nothing(lite: Lite) -> None:
    lite.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, n INT NOT NULL UNIQUE)"
    )
    lite.execute("INSERT INTO t VALUES (7, 70)")
    shape = lite.look("t", "n")
    with lite.session() as connection:
        assert next_key(connection, shape) is None
