"""Under which key and name a root's rows go out: what was told first counts always."""

from dataclasses import replace

import pytest

from walstream.pipeline.pgoutput import Column, Relation
from walstream.pipeline.root_key import ROOTS, RootKey, RootKeys
from walstream.pipeline.state_document import Entries
from walstream.testing import MemoryStore

ID = RootKey(frozenset({"id"}), False, "public", "root")
CODE = replace(ID, columns=frozenset({"code"}))
FULL = replace(ID, columns=frozenset(), full=True)
RENAMED = replace(ID, table="renamed")


def root(*names: str, identity: str = "i") -> Relation:
    """Make a description; a star marks what is of the identity."""
    columns = [Column("*" in name, name.rstrip("*"), 25, -1) for name in names]
    return Relation(7, "public", "root", identity, columns)


BY_ID, BY_CODE = root("id*", "code"), root("id", "code*")


def described(*places: tuple[Relation, int], unsent: int = 0) -> RootKeys:
    made = RootKeys()
    for relation, lsn in places:
        made.describe(relation, (lsn, 0), unsent)
    return made


def test_before_the_first_description_nothing_is_known() -> None:
    assert RootKeys().at((10, 0)) is None
    assert described((BY_ID, 10)).at((9, 5)) is None


def test_a_description_of_what_was_not_sent_yet_counts_at_once() -> None:
    made = described((BY_ID, 10), (BY_CODE, 20), unsent=20)
    assert [made.at((lsn, 0)) for lsn in (10, 19, 20)] == [ID, ID, CODE]


def test_within_a_transaction_it_counts_from_its_row_on() -> None:
    made = described((BY_ID, 10))
    assert made.describe(BY_CODE, (20, 3), 0)
    assert [made.at((20, row)) for row in (0, 2, 3)] == [ID, ID, CODE]
    assert list(made.boundaries()) == [10, 21]


def test_of_what_may_have_been_sent_the_key_of_before_counts() -> None:
    made = described((BY_ID, 10))
    assert not made.agrees(BY_CODE, (20, 0))
    assert made.describe(BY_CODE, (20, 0), 50)
    assert [made.at((lsn, 0)) for lsn in (20, 49, 50)] == [ID, ID, CODE]
    assert not made.describe(BY_CODE, (30, 0), 60)


def test_a_key_whose_columns_are_gone_was_never_sent() -> None:
    made = described((BY_ID, 10))
    assert made.describe(root("number*", "code"), (20, 0), 50)
    assert made.at((20, 0)) == replace(ID, columns=frozenset({"number"}))


def test_the_catalog_counts_from_where_it_was_looked_at() -> None:
    made = described((BY_ID, 10))
    assert made.lacks(CODE)
    assert made.look(CODE, 40)
    assert [made.at((lsn, 0)) for lsn in (39, 40)] == [ID, CODE]
    assert not made.look(CODE, 50)
    # pgoutput may mark an index that the catalog holds for invalid
    assert not made.look(replace(CODE, columns=frozenset()), 50)
    assert not RootKeys().look(CODE, 40)


def test_a_name_counts_as_a_key_does() -> None:
    made = described((BY_ID, 10))
    renamed = replace(BY_ID, name="renamed")
    assert not made.agrees(renamed, (20, 0))
    assert made.lacks(RENAMED)
    assert made.lacks(replace(ID, schema="other"))
    assert made.describe(renamed, (20, 0), 50)
    assert [made.at((lsn, 0)) for lsn in (20, 49, 50)] == [ID, ID, RENAMED]


def stored_as(documents: Entries) -> RootKeys:
    return RootKeys(ROOTS.of("7").read(MemoryStore(documents)) or ())


def test_a_root_without_an_identity_has_its_name_followed() -> None:
    made = described((BY_ID, 10))
    bare = replace(RENAMED, columns=frozenset())
    assert made.look(bare, 40)
    assert not made.lacks(bare)
    assert [made.at((lsn, 0)) for lsn in (39, 40)] == [ID, RENAMED]


def test_what_was_kept_without_a_name_is_read_and_takes_the_catalogs() -> None:
    kept = {"lsn": 10, "seq_id": 0, "columns": ["id"], "full": False}
    made = stored_as({"roots/7": [kept]})
    assert not made.newest.names
    assert made.look(ID, 40)
    assert not made.lacks(ID)
    assert [made.at((lsn, 0)) for lsn in (10, 40)] == [RootKey(frozenset({"id"})), ID]


def test_a_description_of_a_backlog_lies_before_what_the_catalog_said() -> None:
    made = described((BY_ID, 10))
    made.look(FULL, 40)
    made.describe(BY_CODE, (20, 0), 15)
    assert [made.at((lsn, 0)) for lsn in (19, 20, 40)] == [ID, CODE, FULL]


def test_what_no_replay_needs_is_forgotten() -> None:
    made = described((BY_ID, 10), (BY_CODE, 20))
    made.forget_below(25)
    assert made.known
    assert made.at((19, 0)) is None
    assert made.at((25, 0)) == CODE


def test_it_is_right_from_what_is_left_on() -> None:
    made = described((BY_ID, 10), (BY_CODE, 20))
    assert made.known_from == 0  # below, what the stream says counts
    made.forget_below(15)
    assert made.known_from == 0
    made.forget_below(25)
    made.describe(BY_ID, (20, 0), 0)  # it takes the place of the first
    again = stored_as(ROOTS.of("7").entry(made.stored))
    assert (made.known_from, again.known_from) == (20, 20)


@pytest.mark.parametrize("relation", [BY_ID, root("id", "code", identity="f")])
def test_it_is_kept(relation: Relation) -> None:
    made = described((relation, 10))
    again = stored_as(ROOTS.of("7").entry(made.stored))
    assert again.agrees(relation, (10, 0))
