"""How a change of a publication is cut into transactions."""

from dataclasses import replace

from tests.unit.postgres.test_publication import TABLE
from walstream.postgres.publication import Publication
from walstream.postgres.publication_change import PublicationChange

MAIN = Publication("p", 9, False, frozenset(), True, {}, frozenset())
TABLES = [replace(TABLE, name=f"t{number}") for number in range(1201)]


def test_no_transaction_takes_more_locks_than_there_are() -> None:
    parts = list(PublicationChange(MAIN, TABLES).parts())
    assert [len(part.tables) for part in parts] == [500, 500, 201]
    assert list(PublicationChange(MAIN, []).parts()) == []


def test_a_table_moves_in_one_transaction() -> None:
    other = replace(MAIN, name="p_insert")
    moving, rest = PublicationChange(other, TABLES[:3], MAIN, TABLES[:1]).parts()
    assert (moving.tables, moving.leaving) == (TABLES[:1], TABLES[:1])
    assert (rest.tables, rest.leaving) == (TABLES[1:3], ())
