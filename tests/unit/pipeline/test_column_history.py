"""Which facts of its columns a row is written under: the same in a replay."""

from dataclasses import fields, replace

from hypothesis import given
from hypothesis import strategies as st

from walstream.op import ColumnFacts
from walstream.pipeline.column_history import (
    FACTS,
    FactHistory,
    FactSet,
    StoredColumn,
    shape_of,
)
from walstream.pipeline.pgoutput.messages import Column, Relation
from walstream.testing import MemoryStore

INT = ColumnFacts(type_oid=23, type_name="int4")
REQUIRED = replace(INT, not_null=True)
MOOD = ColumnFacts(type_oid=99, type_name="mood", labels=("sad", "ok"))


def test_nothing_is_known_of_a_table_without_sets() -> None:
    assert FactHistory().at((5, 0), "a") is None


def test_facts_count_from_their_place_on_within_a_transaction_too() -> None:
    history = FactHistory()
    assert history.learn((10, 0), "a", [INT])
    assert history.learn((20, 3), "a", [REQUIRED])
    assert history.at((20, 2), "a") == FactSet("a", (INT,), 10)
    assert history.at((20, 3), "a") == FactSet("a", (REQUIRED,), 20, 3)
    assert list(history.boundaries()) == [21]


def test_the_same_facts_are_no_change() -> None:
    history = FactHistory()
    history.learn((10, 0), "a", [INT])
    assert not history.learn((20, 0), "a", [INT])
    assert len(history.stored) == 1


def test_a_shape_that_comes_back_is_kept_where_it_came_back() -> None:
    """Else the older set may be forgotten, and a replay would ask the catalog anew."""
    history = FactHistory()
    history.learn((10, 0), "a", [INT])
    history.learn((20, 0), "b", [INT, INT])
    assert history.learn((30, 0), "a", [INT])
    history.forget_below(30)
    assert history.at((30, 0), "a") == FactSet("a", (INT,), 30)


def test_a_row_of_another_shape_finds_the_next_set_of_its_own() -> None:
    history = FactHistory()
    history.learn((20, 0), "b", [INT, INT])
    assert history.at((5, 0), "b") == FactSet("b", (INT, INT), 20)
    assert history.at((25, 0), "a") is None


def test_a_look_at_an_older_place_leaves_later_sets() -> None:
    """A rewind asks for a shape that was forgotten; what came later stays as it was."""
    history = FactHistory()
    history.learn((20, 0), "b", [INT, INT])
    assert history.learn((5, 0), "a", [INT])
    assert history.at((5, 0), "a") == FactSet("a", (INT,), 5)
    assert history.at((20, 0), "b") == FactSet("b", (INT, INT), 20)


def test_what_no_replay_needs_is_forgotten() -> None:
    history = FactHistory()
    for lsn in (10, 20, 30):
        history.learn((lsn, 0), "a", [replace(INT, default=str(lsn))])
    history.forget_below(25)
    assert [one.from_lsn for one in history.stored] == [20, 30]


def test_sets_survive_the_state() -> None:
    history = FactHistory()
    history.learn((10, 2), "a", [MOOD])
    store = MemoryStore()
    store.write(FACTS.of("16384").entry(history.stored))
    found = FactHistory(FACTS.of("16384").read(store) or ())
    assert found.stored == history.stored


def test_a_shape_is_of_names_types_and_modifiers() -> None:
    def relation(*columns: Column) -> Relation:
        return Relation(1, "public", "t", "d", list(columns))

    one = relation(Column(False, "a", 1043, 14))
    assert shape_of(one) == shape_of(relation(Column(True, "a", 1043, 14)))
    for other in (
        Column(False, "b", 1043, 14),
        Column(False, "a", 25, 14),
        Column(False, "a", 1043, 24),
    ):
        assert shape_of(relation(other)) != shape_of(one)


PLACES = st.tuples(st.integers(1, 20), st.integers(0, 3))


@given(st.lists(st.tuples(PLACES, st.sampled_from("ab"), st.integers(0, 2))))
def test_a_replay_from_any_place_finds_what_was_written(
    looks: list[tuple[tuple[int, int], str, int]],
) -> None:
    """Rows are written in order; later looks change nothing of what they found."""
    history = FactHistory()
    written = []
    for place, shape, default in sorted(looks, key=lambda look: look[0]):
        history.learn(place, shape, [replace(INT, default=str(default))])
        written.append((place, shape, history.at(place, shape)))
    last = {place: (shape, found) for place, shape, found in written}
    for oldest in range(20):
        replayed = FactHistory(history.stored)
        replayed.forget_below(oldest)
        for place, (shape, found) in last.items():
            if place >= (oldest, 0):
                assert replayed.at(place, shape) == found


def test_no_fact_is_lost_where_it_is_stored() -> None:
    names = [one.name for one in fields(StoredColumn)]
    assert names == [one.name for one in fields(ColumnFacts)]
    full = ColumnFacts(
        not_null=True,
        default="1",
        type_oid=1,
        type_name="d",
        base_oid=2,
        base_name="m",
        base_modifier=3,
        element_oid=4,
        element_name="e",
        labels=("a", "b"),
    )
    history = FactHistory()
    history.learn((1, 2), "s", [full])
    assert FactHistory(history.stored).at((1, 2), "s") == FactSet("s", (full,), 1, 2)
