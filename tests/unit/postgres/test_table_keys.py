"""What is learned of keys, from where it counts, and what is kept of it."""

from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from tests.support.table_facts import table_facts
from walstream.errors import Transient
from walstream.lsn import NEVER
from walstream.pipeline.pgoutput import Column, Relation
from walstream.pipeline.root_key import ROOTS, Place
from walstream.postgres.catalog import Looked, TableFacts
from walstream.postgres.table_keys import KeyBook
from walstream.testing import FailAfterWrite, MemoryStore, Reject, faulty

FACTS = table_facts(replica_identity="f", columns=("id", "code"), oid=7)
CODE = replace(FACTS, primary_key=("code",))
RELATION = Relation(
    7, "public", "t", "f", [Column(True, name, 25, -1) for name in FACTS.columns]
)
NAME = "public.t"
COLUMNS = FACTS.columns


def book(positions: MemoryStore | None = None) -> KeyBook:
    made = KeyBook(positions or MemoryStore(), lambda _schema, _table: ("org",))
    made.learn({NAME: FACTS}, 100, 0)
    return made


def key(made: KeyBook, lsn: int, oid: int = 7) -> tuple[str, ...] | None:
    history = made.history(NAME)
    assert history is not None
    assert history.at(lsn).partition_key == ("org",)
    return history.primary_key(lsn, oid, COLUMNS)


def test_what_is_learned_first_counts_for_all_there_was() -> None:
    assert key(book(), 5) == ("id",)


@pytest.mark.parametrize("looks", [[CODE], [FACTS, CODE]], ids=["first", "later"])
def test_a_change_may_lie_behind_the_row_and_counts_from_where_the_look_ended(
    looks: list[TableFacts],
) -> None:
    made = book()
    for number, facts in enumerate(looks):
        made.meet(RELATION, Looked(facts, 910), (500 + number, 0))
    assert [key(made, lsn) for lsn in (500, 909, 910)] == [("id",), ("id",), ("code",)]


def test_a_key_that_is_renamed_behind_the_row_is_the_rows_own_before() -> None:
    made = book()
    renamed = replace(FACTS, primary_key=("uid",), columns=("uid", "code"))
    made.meet(RELATION, Looked(renamed, 910), (500, 0))
    history = made.history(NAME)
    assert history is not None
    assert key(made, 500) == ("id",)
    assert history.primary_key(500, 7, renamed.columns) == ("uid",)


def test_what_is_learned_is_kept_before_it_counts() -> None:
    positions = MemoryStore()
    book(positions).meet(RELATION, Looked(CODE, 910), (500, 0))
    again = KeyBook(positions, lambda _schema, _table: ("org",))
    again.learn({NAME: CODE}, 2000, 0)
    assert [key(again, lsn) for lsn in (909, 910)] == [("id",), ("code",)]


@pytest.mark.parametrize("fault", [Reject, FailAfterWrite])
@pytest.mark.parametrize("identity", ["f", "d"])
def test_a_key_that_could_not_be_stored_is_stored_when_it_is_asked_again(
    fault: type[Reject | FailAfterWrite], identity: str
) -> None:
    """Else a replay would give rows another key than they went out with."""
    lost = fault(Transient("cannot write: ENOSPC"))
    store = MemoryStore()
    positions = faulty(store, write=[None, lost])
    made = book(positions)
    columns = [replace(one, is_key=one.name == "code") for one in RELATION.columns]
    described = replace(RELATION, replica_identity=identity, columns=columns)
    found = replace(CODE, replica_identity=identity, identity=("code",))
    with pytest.raises(Transient):
        made.meet(described, Looked(found, 910), (500, 0))
    made.meet(described, Looked(found, 930), (500, 0))
    again = KeyBook(store, lambda _schema, _table: ("org",))
    again.learn({NAME: found}, 2000, 0)
    assert key(made, 950) == key(again, 950) == ("code",)


@pytest.mark.parametrize("fault", [Reject, FailAfterWrite])
def test_a_roots_key_that_could_not_be_stored_is_stored_when_it_is_asked_again(
    fault: type[Reject | FailAfterWrite],
) -> None:
    lost = fault(Transient("cannot write: ENOSPC"))
    store = MemoryStore()
    positions = faulty(store, write=[None, lost])
    root = replace(FACTS, kind="p")
    made = book(positions)
    with pytest.raises(Transient):
        made.meet(RELATION, Looked(root, 910), (500, 0))
    made.meet(RELATION, Looked(root, 910), (500, 0))
    assert ROOTS.of("7").read(store) is not None


def test_a_table_that_is_gone_has_no_key_unless_its_like_is_known() -> None:
    made = book()
    made.meet(replace(RELATION, oid=6), Looked(None, 910), (500, 0))
    assert key(made, 500, oid=6) == ("id",)
    other = replace(RELATION, oid=5, columns=[Column(True, "x", 25, -1)])
    made.meet(other, Looked(None, 910), (500, 0))
    history = made.history(NAME)
    assert history is not None
    assert history.primary_key(500, 5, ("x",)) == ()


def test_a_table_nobody_met_before_it_went_has_no_key() -> None:
    made = KeyBook(MemoryStore(), lambda _schema, _table: ("org",))
    made.meet(RELATION, Looked(None, 910), (500, 0))
    assert key(made, 500) == ()


def test_a_renamed_table_is_met_under_the_streams_name() -> None:
    made = book()
    now = replace(CODE, name="u", oid=8)
    made.meet(replace(RELATION, oid=8), Looked(now, 910), (500, 0))
    assert key(made, 500, oid=8) == ("code",)
    assert key(made, 500) == ("id",)
    assert made.history("public.u") is None


ROOT = replace(FACTS, kind="p", replica_identity="i", identity=("id",))
BY_ID = replace(
    RELATION,
    replica_identity="i",
    columns=[replace(one, is_key=one.name == "id") for one in RELATION.columns],
)
BY_CODE = replace(
    BY_ID,
    columns=[replace(one, is_key=not one.is_key) for one in BY_ID.columns],
)


def root_book(positions: MemoryStore, flush: int, unsent: int = NEVER) -> KeyBook:
    made = KeyBook(positions, lambda _schema, _table: ())
    made.learn({NAME: ROOT}, flush, 0, unsent)
    return made


def root_key(made: KeyBook, lsn: int) -> frozenset[str]:
    history = made.history(NAME)
    assert history is not None
    found = history.roots[7].at((lsn, 0))
    assert found is not None
    return found.columns


def test_a_root_is_known_when_it_is_described_as_it_was() -> None:
    made = root_book(MemoryStore(), 100)
    assert not made.knows(BY_ID, (110, 0))
    made.meet(BY_ID, Looked(ROOT, 120), (110, 0))
    assert made.knows(BY_ID, (130, 0))
    assert not made.knows(BY_CODE, (130, 0))


def test_a_root_of_another_name_is_looked_up_though_the_name_is_known() -> None:
    made = root_book(MemoryStore(), 100)
    assert not made.knows(replace(BY_ID, oid=8), (110, 0))


@pytest.mark.parametrize(("unsent", "first"), [(NEVER, "id"), (150, "code")])
def test_what_a_stream_that_died_may_have_sent_keeps_its_key(
    unsent: int, first: str
) -> None:
    positions = MemoryStore()
    root_book(positions, 100).meet(BY_ID, Looked(ROOT, 120), (110, 0))
    by_code = replace(ROOT, identity=("code",))
    again = root_book(positions, 200, unsent)
    again.meet(BY_CODE, Looked(by_code, 220), (160, 0))
    assert [root_key(again, lsn) for lsn in (110, 160, 220)] == [
        {"id"},
        {first},
        {"code"},
    ]


def test_a_root_that_is_gone_goes_by_what_was_kept() -> None:
    positions = MemoryStore()
    root_book(positions, 100).meet(BY_ID, Looked(ROOT, 120), (110, 0))
    again = KeyBook(positions, lambda _schema, _table: ())
    again.learn({}, 200, 0)
    again.meet(BY_CODE, Looked(None, 220), (160, 0))
    assert root_key(again, 160) == {"id"}


def test_a_table_whose_key_was_away_while_it_was_streamed_is_told_of() -> None:
    made = KeyBook(positions := MemoryStore(), lambda _schema, _table: ())
    default = replace(FACTS, replica_identity="d", identity=("id",))
    made.learn({NAME: default}, 100, 0)
    keyed = replace(
        RELATION,
        replica_identity="d",
        columns=[Column(name == "id", name, 25, -1) for name in COLUMNS],
    )
    bare = replace(keyed, columns=[Column(False, name, 25, -1) for name in COLUMNS])
    assert made.knows(keyed, (500, 0))
    assert not made.knows(bare, (500, 0))
    made.meet(bare, Looked(default, 910), (500, 0))
    assert made.knows(bare, (501, 0))
    assert not made.regained()
    assert not made.knows(keyed, (502, 0))
    made.meet(keyed, Looked(default, 910), (502, 0))
    assert made.knows(keyed, (503, 0))
    assert made.regained() == [7]
    again = KeyBook(positions, lambda _schema, _table: ())
    assert again.regained() == [7]
    again.told(7)
    assert not again.regained()


def test_a_table_that_had_no_key_from_the_start_is_told_of() -> None:
    bare = replace(FACTS, replica_identity="d", primary_key=())
    made = KeyBook(MemoryStore(), lambda _schema, _table: ())
    made.learn({NAME: bare}, 100, 0)
    keyed = replace(
        RELATION,
        replica_identity="d",
        columns=[Column(True, name, 25, -1) for name in COLUMNS],
    )
    made.meet(keyed, Looked(FACTS, 910), (500, 0))
    assert made.regained() == [7]


def test_rows_under_a_partition_key_have_one() -> None:
    made = KeyBook(MemoryStore(), lambda _schema, _table: ("org",))
    made.learn({NAME: replace(FACTS, replica_identity="d", primary_key=())}, 100, 0)
    made.meet(RELATION, Looked(FACTS, 910), (500, 0))
    assert not made.regained()


def test_a_table_that_was_gone_before_it_was_looked_up_says_nothing_of_the_next() -> (
    None
):
    made = KeyBook(MemoryStore(), lambda _schema, _table: ("org",))
    gone = replace(RELATION, oid=6)
    made.meet(gone, Looked(None, 100), (50, 0))
    made.meet(RELATION, Looked(FACTS, 200), (150, 0))
    assert key(made, 150) == key(made, 250) == ("id",)


@pytest.mark.parametrize("place", [(500, 0), (500, 2)])
def test_rows_of_a_table_that_is_gone_do_not_stop_for_a_key(place: Place) -> None:
    """Its columns cannot be named so again. What is known of it counts all the same."""
    made = book()
    code = replace(RELATION, columns=[Column(True, "code", 25, -1)])
    made.meet(code, Looked(None, 910), place)
    history = made.history(NAME)
    assert history is not None
    assert history.primary_key(500, 7, ("code",)) == ()
    assert history.primary_key(600, 7, COLUMNS) == ("id",)


@pytest.mark.parametrize(
    ("known", "identity", "said"),
    [(False, "f", 1), (False, "d", 0), (True, "f", 0)],
)
def test_rows_of_a_table_that_is_gone_go_out_without_a_key_and_not_in_silence(
    known: bool, identity: str, said: int
) -> None:
    positions = MemoryStore()
    made = KeyBook(positions, lambda _schema, _table: ())
    if known:
        made.learn({NAME: replace(FACTS, primary_key=())}, 100, 0)
    gone = replace(RELATION, replica_identity=identity)
    with capture_logs() as logs:
        made.meet(gone, Looked(None, 910), (500, 0))
    assert [log["table"] for log in logs] == [NAME] * said
    again = KeyBook(positions, lambda _schema, _table: ())
    with capture_logs() as logs:
        again.meet(gone, Looked(None, 920), (500, 0))
    assert not logs


DEFERRED = replace(FACTS, replica_identity="d", key_immediate=False)
UNMARKED = Relation(
    7, "public", "t", "d", [Column(False, name, 25, -1) for name in FACTS.columns]
)


@pytest.mark.parametrize("then", [False, True])
def test_a_description_that_tells_nothing_tells_nothing_in_a_replay(
    then: bool,
) -> None:
    """A deferrable key is not marked; the catalog may have made it another since."""
    positions = MemoryStore()
    made = KeyBook(positions, lambda _schema, _table: ("org",))
    first = DEFERRED if then else replace(DEFERRED, key_immediate=True)
    made.learn({NAME: first}, 100, 0)
    made.meet(UNMARKED, Looked(DEFERRED, 300), (200, 0))
    assert key(made, 250) == ("id",)
    again = KeyBook(positions, lambda _schema, _table: ("org",))
    again.learn({NAME: replace(FACTS, replica_identity="d")}, 400, 0)
    if not again.knows(UNMARKED, (200, 0)):
        again.meet(UNMARKED, Looked(FACTS, 500), (200, 0))
    assert key(again, 250) == ("id",)
