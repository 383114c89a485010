"""Reading SQLite in the order of its key."""

from collections.abc import Iterable
from itertools import chain, pairwise
from random import Random
from typing import Any

import pytest

from tests.support.servers.sqlite import Lite
from walstream.errors import ConfigError
from walstream.sources.sql.database.query import (
    ahead,
    cuts,
    newest,
    oldest,
    picked,
    present,
    rows,
)
from walstream.sources.sql.database.shape import SqlTableShape

FAR = 1 << 80  # beyond what SQLite can hold


@pytest.fixture
def seven(lite: Lite) -> Lite:
    """Seven rows with holes, in no order."""
    lite.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, note TEXT)")
    keys = [9, 3, 12, -4, 5, 20, 10]
    lite.fill("t", ((key, f"row {key}") for key in keys))
    return lite


def keys(blocks: Iterable[list[tuple[Any, ...]]]) -> list[list[int]]:
    return [[row[0] for row in block] for block in blocks]


def test_newest_and_oldest_are_the_ends_of_the_keys(seven: Lite) -> None:
    with seven.session() as connection:
        assert newest(connection, seven.look("t")) == 20
        assert oldest(connection, seven.look("t")) == -4


def test_empty_table_has_neither_newest_nor_anything(lite: Lite) -> None:
    lite.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    shape = lite.look("t")
    with lite.session() as connection:
        assert newest(connection, shape) is None
        assert oldest(connection, shape) is None
        assert ahead(connection, shape, None, 5) is None
        assert cuts(connection, shape, None, 100, 4) == []
        assert list(rows(connection, shape, None, 100)) == []
        assert present(connection, shape, [(0, 100)], 9) == []
        assert list(picked(connection, shape, [1, 2])) == []


def test_ahead_is_the_last_of_the_next_rows(seven: Lite) -> None:
    shape = seven.look("t")
    with seven.session() as connection:
        assert ahead(connection, shape, None, 3) == 5
        assert ahead(connection, shape, 5, 3) == 12
        assert ahead(connection, shape, 12, 3) == 20
        assert ahead(connection, shape, 20, 3) is None
        assert ahead(connection, shape, FAR, 3) is None
        assert ahead(connection, shape, -FAR, 100) == 20


def test_rows_come_in_the_order_of_keys_after_the_one_up_to_the_other(
    seven: Lite,
) -> None:
    shape = seven.look("t")
    with seven.session() as connection:
        assert keys(rows(connection, shape, None, 12)) == [[-4, 3, 5, 9, 10, 12]]
        assert keys(rows(connection, shape, 3, FAR)) == [[5, 9, 10, 12, 20]]
        assert keys(rows(connection, shape, -FAR, 3, limit=1)) == [[-4]]
        assert keys(rows(connection, shape, 3, 3)) == []
        (block,) = rows(connection, shape, 10, 12)
        assert block == [(12, "row 12")]


def test_limit_is_of_all_blocks_together(
    seven: Lite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("walstream.sources.sql.database.page.MOST_ROWS", 2)
    shape = seven.look("t")
    with seven.session() as connection:
        assert keys(rows(connection, shape, None, 20, limit=3)) == [[-4, 3], [5]]
        assert keys(rows(connection, shape, None, 20, limit=0)) == []
        assert keys(rows(connection, shape, 12, 20, limit=9)) == [[20]]
        assert [len(one) for one in rows(connection, shape, None, 20)] == [2, 2, 2, 1]


def test_rows_that_come_while_others_are_handed_out_are_read_too(
    seven: Lite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("walstream.sources.sql.database.page.MOST_ROWS", 2)
    shape = seven.look("t")
    seven.execute("PRAGMA journal_mode = DELETE")
    with seven.session() as connection:
        blocks = rows(connection, shape, None, 100)
        next(blocks)
        seven.execute("INSERT INTO t VALUES (15, 'late')")  # no lock is held
        assert keys(blocks) == [[5, 9], [10, 12], [15, 20]]


def test_present_names_the_keys_of_ranges_once_each(seven: Lite) -> None:
    shape = seven.look("t")
    with seven.session() as connection:
        asked = [(-FAR, -4), (4, 9), (10, 10), (20, FAR)]
        assert present(connection, shape, asked, 9) == [-4, 5, 9, 10, 20]
        assert present(connection, shape, asked, 3) == [-4, 5, 9]
        many = [(key, key) for key in range(-200, 200)]
        assert present(connection, shape, many, 99) == [-4, 3, 5, 9, 10, 12, 20]
        assert present(connection, shape, many, 6) == [-4, 3, 5, 9, 10, 12]
        assert present(connection, shape, [], 9) == []


def test_picked_reads_these_rows_and_no_others(lite: Lite) -> None:
    lite.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, note TEXT)")
    lite.fill("t", ((key, "x") for key in range(0, 4000, 2)))
    shape = lite.look("t")
    wanted = list(range(100, 2000, 3))
    Random(7).shuffle(wanted)  # noqa: S311 - no secret
    with lite.session() as connection:
        blocks = keys(picked(connection, shape, wanted))
    assert list(chain.from_iterable(blocks)) == [
        key for key in sorted(wanted) if key % 2 == 0
    ]
    assert len(blocks) > 1


def test_cut_ranges_together_are_the_whole(seven: Lite) -> None:
    shape = seven.look("t")
    with seven.session() as connection:
        assert cuts(connection, shape, None, 20, 4) == [1, 7, 13]
        assert cuts(connection, shape, 9, 20, 2) == [14]
        assert cuts(connection, shape, 12, 20, 1) == []
        assert cuts(connection, shape, 12, 20, 50) == []
        assert cuts(connection, shape, 20, 20, 3) == []
        ends = [None, *cuts(connection, shape, None, 20, 5), 20]
        read = [
            key
            for low, high in pairwise(ends)
            for block in keys(rows(connection, shape, low, high or 0))
            for key in block
        ]
    assert read == [-4, 3, 5, 9, 10, 12, 20]


@pytest.fixture
def junk(lite: Lite) -> tuple[Lite, SqlTableShape]:
    """SQLite keeps anything in a column of any type."""
    lite.execute("CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY)")
    lite.fill("t", iter([(1,), (2.5,), (3,)]))
    return lite, lite.look("t")


def test_key_that_is_a_fraction_or_a_text_is_refused(
    junk: tuple[Lite, SqlTableShape],
) -> None:
    lite, shape = junk
    with lite.session() as connection:
        with pytest.raises(ConfigError, match="has values that are not integers"):
            list(rows(connection, shape, None, 5))
        with pytest.raises(ConfigError, match="has values that are not integers"):
            present(connection, shape, [(0, 9)], 9)
        assert newest(connection, shape) == 3
        lite.execute("INSERT INTO t VALUES ('text')")
        with pytest.raises(ConfigError, match="has values that are not integers"):
            newest(connection, shape)
