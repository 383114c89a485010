"""What one connection's descriptions of tables become."""

import gc
import os
from dataclasses import replace

import psutil
import pytest

from walstream.errors import HistoryError
from walstream.formats.context import Context
from walstream.op import ColumnFacts, Table
from walstream.pipeline.assembler import Assembler
from walstream.pipeline.column_history import FactHistory, shape_of
from walstream.pipeline.ledger import Transaction
from walstream.pipeline.pgoutput import Begin, Column, Insert, Relation
from walstream.pipeline.relation_cache import Relations
from walstream.pipeline.root_key import RootKeys, RootKeySince
from walstream.pipeline.row_key import KeyHistory, KeySet
from walstream.pipeline.sinks.dry_run import DrySink
from walstream.records.encoding import SinkRules
from walstream.records.router import Router, RoutingRules

NO_KEYS = KeyHistory([])
PLACE = (100, 0)


def relation(*columns: str, identity: str = "d", oid: int = 1) -> Relation:
    made = [Column(text.endswith("*"), text.rstrip("*"), 25, -1) for text in columns]
    return Relation(oid, "public", f"t{oid}", identity, made)


def test_an_equal_description_is_the_same_table() -> None:
    relations = Relations()
    first = relations.describe(relation("id*", "v"), NO_KEYS, PLACE)
    assert relations.describe(relation("id*", "v"), NO_KEYS, PLACE) is first
    other = relations.describe(relation("id*", "w"), NO_KEYS, PLACE)
    assert other is not first
    assert relations.describe(relation("id*", "v"), NO_KEYS, PLACE) is not other


def test_the_next_row_of_the_first_of_two_tells_that_it_is_a_root() -> None:
    relations = Relations()
    relations.describe(relation("id", "v", identity="f"), NO_KEYS, PLACE)
    relations.describe(relation("id*", "v", oid=2), NO_KEYS, PLACE)
    assert 1 not in relations.shapes
    assert not relations.missing(1, PLACE).whole
    assert not relations.shapes[1].whole


def test_two_that_no_row_follows_are_tables_of_their_own() -> None:
    for end in ("let_go", "reach", "later"):
        relations = Relations()
        relations.describe(relation("id", "v", identity="f"), NO_KEYS, PLACE)
        relations.describe(relation("id*", "v", oid=2), NO_KEYS, PLACE)
        if end == "let_go":
            relations.let_go()
        elif end == "reach":
            relations.reach(200)
        else:
            relations.missing(1, (100, 1))
        assert relations.shapes[1].whole


def test_a_key_that_is_known_later_on_is_taken_there() -> None:
    sets = [
        KeySet(0, ("a",), (), ("a", "v"), 1),
        KeySet(200, ("c",), (), ("c", "v"), 1),
        KeySet(300, ("b",), (), ("b", "v"), 1),
    ]
    relations = Relations()
    relations.reach(100)
    relations.describe(relation("b", "v", identity="f"), KeyHistory(sets), PLACE)
    assert relations.shapes[1].table.key == (0,)


def rooted(*places: tuple[int, int]) -> KeyHistory:
    """Make the keys of root 1: its first column, then from each place the next."""
    keys = RootKeys()
    for name, place in zip("abc", places, strict=False):
        keys.describe(
            relation(*(f"{one}*" if one == name else one for one in "abc")), place, 0
        )
    history = KeyHistory([])
    history.roots = {1: keys}
    return history


def test_a_root_goes_by_what_is_kept_not_by_how_it_is_described() -> None:
    history = rooted((0, 0), (200, 0), (250, 2))
    relations = Relations()
    found = []
    for lsn in (100, 200, 250, 300):
        relations.reach(lsn)
        if lsn == 100:
            relations.describe(relation("a", "b*", "c"), history, (lsn, 0))
        shape = relations.shapes[1]
        assert shape.split == shape.table.key
        found.append(shape.table.key)
    assert found == [(0,), (1,), (1,), (2,)]
    assert relations.describe(relation("a", "b*", "c"), history, (250, 2)).key == (2,)


def test_a_root_goes_out_under_the_name_that_is_kept() -> None:
    keys = RootKeys()
    before, after = relation("a*", "b"), replace(relation("a*", "b"), name="renamed")
    keys.describe(before, (0, 0), 0)
    keys.describe(after, (200, 0), 0)
    history = KeyHistory([])
    history.roots = {1: keys}
    relations = Relations()
    relations.reach(100)
    assert relations.describe(after, history, (100, 0)).name == before.name
    relations.reach(200)
    assert relations.shapes[1].table.name == "renamed"
    assert relations.shapes[1].table.oid == 1


def test_a_root_whose_name_was_not_kept_has_the_described_one() -> None:
    kept = RootKeySince(0, 0, ("a",), full=False)
    history = KeyHistory([])
    history.roots = {1: RootKeys([kept])}
    described = relation("a", "b*")
    table = Relations().describe(described, history, PLACE)
    assert (table.schema, table.name) == (described.namespace, described.name)
    assert table.key == (0,)


def test_a_root_without_the_columns_that_are_kept_goes_by_its_description() -> None:
    relations = Relations()
    described = relation("d*", "b", "c")
    assert relations.describe(described, rooted((0, 0)), PLACE).key == (0,)


def test_a_leaf_without_a_roots_kept_key_is_blind() -> None:
    relations = Relations()
    relations.reach(100)
    relations.describe(relation("a", "b*", "c"), rooted((0, 0)), PLACE)
    relations.describe(relation("a", "b*", "c", oid=2), NO_KEYS, PLACE)
    shape = relations.missing(1, PLACE)
    assert [(one.name, one.lacking) for one in shape.blind] == [("t2", ("a",))]


def test_ten_thousand_equal_descriptions_move_no_memory() -> None:
    """As an hour of autovacuum makes pgoutput send: one for each ANALYZE."""
    names = [f"column_{number}" for number in range(100)]
    columns = [Column(name == names[0], name, 25, -1) for name in names]
    rules = SinkRules("log", "op", "", "send", True, b"", Context())
    router = Router("app", RoutingRules({}, "{schema}.{table}", ""))
    sink = DrySink(rules, router, says=False)
    assembler = Assembler(0)
    tables: set[Table] = set()
    process = psutil.Process(os.getpid())

    def describe(times: int) -> int:
        for number in range(times):
            assembler.begin(Begin(100 + number, 0, 1))
            made = Relation(1, "public", "wide", "d", list(columns))
            assembler.describe(made, NO_KEYS)
            op = assembler.row(Insert(1, ["x"] * 100, False), 0)
            tables.add(op.table)
            sink.send(op, Transaction(0))
        gc.collect()
        return int(process.memory_info().rss)

    before = describe(100)
    after = describe(10_000)
    assert after - before < 5 << 20
    assert len(tables) == 1


def test_another_modifier_makes_another_table() -> None:
    relations = Relations()

    def described(modifier: int) -> Table:
        columns = [Column(True, "n", 1700, modifier)]
        return relations.describe(Relation(1, "s", "t", "d", columns), NO_KEYS, PLACE)

    first = described(327686)
    assert first.modifiers == (327686,)
    assert described(327686) is first
    assert described(327687).modifiers == (327687,)


def test_a_third_that_comes_with_two_leaves_the_first_a_table() -> None:
    relations = Relations()
    for oid in (1, 2, 3):
        relations.describe(relation("id*", oid=oid), NO_KEYS, PLACE)
    assert 1 in relations.shapes
    assert 2 not in relations.shapes
    assert relations.missing(2, PLACE).relation.oid == 2


@pytest.mark.parametrize(
    ("second", "place"), [(1, PLACE), (1, (100, 5)), (2, (100, 5)), (2, (200, 0))]
)
def test_what_was_not_described_together_is_ready_at_once(
    second: int, place: tuple[int, int]
) -> None:
    relations = Relations()
    relations.describe(relation("id*"), NO_KEYS, PLACE)
    relations.describe(relation("id*", oid=second), NO_KEYS, place)
    assert {1, second} <= relations.shapes.keys()


def partitioned() -> KeyHistory:
    """Make keys of a table of which a sink wants another partition key from 200 on."""
    return KeyHistory([KeySet(0, ("id",)), KeySet(200, ("id",), ("v",))])


@pytest.mark.parametrize(("lsn", "split"), [(100, (0,)), (200, (0, 1)), (300, (0, 1))])
def test_a_partition_key_counts_from_its_lsn_on(
    lsn: int, split: tuple[int, ...]
) -> None:
    relations = Relations()
    relations.reach(lsn)
    relations.describe(relation("id*", "v"), partitioned(), (lsn, 0))
    assert relations.shapes[1].split == split
    relations.reach(lsn + 100)
    assert relations.shapes[1].split == (0, 1)


def test_what_no_key_changes_is_made_once() -> None:
    relations = Relations()
    relations.reach(100)
    relations.describe(relation("id*", "v"), partitioned(), PLACE)
    before = relations.shapes[1]
    relations.reach(199)
    assert relations.shapes[1] is before
    relations.reach(200)
    after = relations.shapes[1]
    assert after is not before
    relations.reach(300)
    assert relations.shapes[1] is after


def test_a_root_goes_by_the_key_of_its_first_row_s_place() -> None:
    history = rooted((0, 0), (200, 0), (200, 1))
    relations = Relations()
    relations.reach(100)
    relations.describe(relation("a", "b*", "c"), history, PLACE)
    keys = []
    for lsn in (200, 201):
        relations.reach(lsn)
        keys.append(relations.shapes[1].table.key)
    assert keys == [(1,), (2,)]
    replayed = Relations()
    replayed.reach(200)
    described = relation("a", "b*", "c")
    assert replayed.describe(described, history, (200, 0)).key == (1,)
    assert replayed.describe(described, history, (200, 1)).key == (2,)


def test_a_key_that_is_not_known_any_more_keys_no_row() -> None:
    sets = [
        KeySet(0, ("id",), (), ("id", "v"), 1),
        KeySet(200, ("x", "id"), (), ("id", "v", "x"), 1),
    ]
    relations = Relations()
    relations.reach(100)
    relations.describe(relation("id", "v", identity="f"), KeyHistory(sets), PLACE)
    assert relations.shapes[1].table.key == (0,)
    relations.reach(200)
    assert 1 not in relations.shapes
    with pytest.raises(HistoryError, match="a row at 0/C8"):
        relations.missing(1, (200, 0))


def facts_of(*places: tuple[int, int]) -> FactHistory:
    """Make facts of a column that has another default from each place on."""
    facts = FactHistory()
    for number, place in enumerate(places):
        learned = [ColumnFacts(default=str(number))]
        facts.learn(place, shape_of(relation("id*")), learned)
    return facts


def default(table: Table) -> str | None:
    return table.facts[0].default


def test_facts_count_from_their_place_on() -> None:
    facts, found = facts_of((0, 0), (200, 0), (300, 2)), []
    relations = Relations()
    relations.reach(100)
    assert relations.describe(relation("id*"), NO_KEYS, PLACE).facts == ()
    found.append(default(relations.describe(relation("id*"), NO_KEYS, PLACE, facts)))
    for lsn in (200, 300, 301):
        relations.reach(lsn)
        found.append(default(relations.shapes[1].table))
    assert found == ["0", "1", "1", "2"]
    replayed = Relations()
    replayed.reach(300)
    for seq_id, expected in ((0, "1"), (2, "2")):
        table = replayed.describe(relation("id*"), NO_KEYS, (300, seq_id), facts)
        assert default(table) == expected


def test_facts_that_are_learned_count_from_their_row_on() -> None:
    relations = Relations()
    relations.reach(100)
    relations.describe(relation("id*"), NO_KEYS, PLACE, facts_of((0, 0)))
    learned = facts_of((0, 0), (100, 3))
    assert default(relations.learn(1, learned, (100, 2))) == "0"
    assert default(relations.learn(1, learned, (100, 3))) == "1"
    assert default(relations.shapes[1].table) == "1"
    # a description that brings none goes on with them
    assert default(relations.describe(relation("id*"), NO_KEYS, (100, 4))) == "1"
