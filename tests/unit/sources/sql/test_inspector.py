"""Tables as their database has them: each is looked at, whatever the others are."""

import sqlite3
from contextlib import closing
from pathlib import Path

from tests.support.programs.sqlite_source import configured, execute, file_of, source_of
from walstream.config import SqlSource
from walstream.errors import ConfigError, Transient
from walstream.sources.sql.inspector import visit, wish_of

TABLES = """
CREATE TABLE t (id INTEGER PRIMARY KEY);
INSERT INTO t VALUES (3), (7);
CREATE TABLE empty (id INTEGER PRIMARY KEY);
CREATE TABLE texts (id TEXT PRIMARY KEY NOT NULL);
"""


def source(folder: Path, *tables: str) -> SqlSource:
    execute(file_of(folder), TABLES)
    return source_of(configured(folder, {name: {} for name in tables}))


def test_the_keys_that_are_there_are_told(tmp_path: Path) -> None:
    found = visit(source(tmp_path, "t", "empty"))
    assert found.obstacle is None
    assert (found.tables["t"].oldest, found.tables["t"].newest) == (3, 7)
    assert found.tables["empty"].newest is None
    assert "does not show open transactions" in found.tables["t"].lacks_mark


def test_a_table_that_cannot_be_polled_hides_no_other(tmp_path: Path) -> None:
    found = visit(source(tmp_path, "none", "texts", "t"))
    assert found.problem is None
    assert found.tables["t"].newest == 7
    assert isinstance(found.obstacle, ConfigError)
    assert "no table none" in str(found.obstacle)
    assert "is not an integer" in str(found.tables["texts"].problem)


def test_a_database_that_cannot_be_asked_is_one_problem(tmp_path: Path) -> None:
    found = visit(source_of(configured(tmp_path, {"t": {}, "u": {}})))
    assert not found.tables
    assert found.obstacle is found.problem
    assert "SQLite file" in str(found.problem)


def test_a_database_that_is_busy_is_asked_once_for_all_tables(tmp_path: Path) -> None:
    polled = source(tmp_path, "t", "empty")
    at_once = polled.model_copy(update={"url": f"{polled.url}?timeout=0"})
    with closing(sqlite3.connect(file_of(tmp_path))) as other:
        other.execute("BEGIN EXCLUSIVE")
        found = visit(at_once)
    assert isinstance(found.problem, Transient)
    assert "locked" in str(found.problem)
    assert not found.tables


def test_a_wish_is_what_is_configured(tmp_path: Path) -> None:
    config = configured(tmp_path, {"t": {"fields": ["a", "b"], "primary_key": "k"}})
    wish = wish_of("t", source_of(config).tables["t"])
    assert (wish.name, wish.primary_key, wish.fields) == ("t", "k", ("a", "b"))
