"""What is learned of keys, from where it counts, and what is kept of it."""

from dataclasses import replace

from walstream.pgoutput import Column, Relation
from walstream.postgres.catalog import Looked, TableFacts
from walstream.postgres.key_book import KeyBook
from walstream.testing import MemoryPositions

FACTS = TableFacts(
    schema="public",
    name="t",
    kind="r",
    persistence="p",
    replica_identity="f",
    primary_key=("id",),
    identity=(),
    columns=("id", "code"),
    not_null=frozenset(),
    root=None,
    leaves_full=True,
    leaves_identified=True,
    oid=7,
)
CODE = replace(FACTS, primary_key=("code",))
RELATION = Relation(
    7, "public", "t", "f", [Column(True, name, 25, -1) for name in FACTS.columns]
)
NAME = "public.t"
COLUMNS = FACTS.columns


def book(positions: MemoryPositions | None = None) -> KeyBook:
    made = KeyBook(positions or MemoryPositions(), lambda _schema, _table: ("org",))
    made.learn({NAME: FACTS}, 100, 0)
    return made


def key(made: KeyBook, lsn: int, oid: int = 7) -> tuple[str, ...] | None:
    history = made.history(NAME)
    assert history is not None
    assert history.at(lsn).partition_key == ("org",)
    return history.primary_key(lsn, oid, COLUMNS)


def test_what_is_learned_first_counts_for_all_there_was() -> None:
    assert key(book(), 5) == ("id",)


def test_a_change_since_the_last_look_counts_from_the_transaction_at_hand() -> None:
    made = book()
    made.meet(RELATION, Looked(CODE, 900, 910), 500)
    assert [key(made, lsn) for lsn in (499, 500)] == [("id",), ("code",)]


def test_a_change_that_may_be_later_than_the_row_counts_from_now() -> None:
    made = book()
    made.meet(RELATION, Looked(FACTS, 800, 810), 500)
    made.meet(RELATION, Looked(CODE, 900, 910), 600)
    assert [key(made, lsn) for lsn in (600, 909, 910)] == [("id",), ("id",), ("code",)]


def test_what_is_learned_is_kept_before_it_counts() -> None:
    positions = MemoryPositions()
    book(positions).meet(RELATION, Looked(CODE, 900, 910), 500)
    again = KeyBook(positions, lambda _schema, _table: ("org",))
    again.learn({NAME: CODE}, 2000, 0)
    assert [key(again, lsn) for lsn in (499, 500)] == [("id",), ("code",)]


def test_a_table_that_is_gone_has_no_key_unless_its_like_is_known() -> None:
    made = book()
    made.meet(replace(RELATION, oid=6), Looked(None, 900, 910), 500)
    assert key(made, 500, oid=6) == ("id",)
    other = replace(RELATION, oid=5, columns=[Column(True, "x", 25, -1)])
    made.meet(other, Looked(None, 900, 910), 500)
    history = made.history(NAME)
    assert history is not None
    assert history.primary_key(500, 5, ("x",)) == ()


def test_a_table_nobody_met_before_it_went_has_no_key() -> None:
    made = KeyBook(MemoryPositions(), lambda _schema, _table: ("org",))
    made.meet(RELATION, Looked(None, 900, 910), 500)
    assert key(made, 500) == ()


def test_a_renamed_table_is_met_under_the_streams_name() -> None:
    made = book()
    now = replace(CODE, name="u", oid=8)
    made.meet(replace(RELATION, oid=8), Looked(now, 900, 910), 500)
    assert key(made, 500, oid=8) == ("code",)
    assert key(made, 500) == ("id",)
    assert made.history("public.u") is None
