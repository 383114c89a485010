"""Messages to ops: numbers, key changes, and what was not sent."""

from typing import Any

import pytest

from walstream.errors import HistoryError, WalstreamError
from walstream.formats.column_type import ARRAY
from walstream.op import ColumnFacts, Kind, ReplicationOp
from walstream.pipeline.assembler import Assembler, outside
from walstream.pipeline.column_history import FactHistory, shape_of
from walstream.pipeline.pgoutput import (
    Begin,
    Column,
    Delete,
    Insert,
    Relation,
    Truncate,
    Type,
    Update,
)
from walstream.pipeline.row_key import KeyHistory, KeySet
from walstream.row import OMITTED, UNCHANGED, Value
from walstream.telemetry.meter import TableMeters

NO_KEYS = KeyHistory([])


def relation(
    *columns: str, identity: str = "d", oid: int = 1, name: str = "t"
) -> Relation:
    """Describe a table; a column that ends in * is part of the identity."""
    made = [
        Column(text.endswith("*") or identity == "f", text.rstrip("*"), 25, -1)
        for text in columns
    ]
    return Relation(oid, "public", name, identity, made)


def begun(
    table: Relation,
    history: KeyHistory = NO_KEYS,
    *,
    lsn: int = 100,
) -> Assembler:
    assembler = Assembler(0)
    assembler.begin(Begin(lsn, commit_time=7, xid=5))
    assembler.describe(table, history)
    return assembler


def insert(*new: Value) -> Insert:
    return Insert(1, list(new), UNCHANGED in new)


def update(old: list[Value] | None, new: list[Value], *, whole: bool = False) -> Update:
    return Update(1, old, whole, new, UNCHANGED in new)


def name(op: ReplicationOp) -> tuple[int, int]:
    return op.lsn, op.seq_id


def test_ops_are_named_by_commit_lsn_and_number() -> None:
    assembler = begun(relation("id*"))
    ops = [assembler.row(insert(str(n)), 90 + n) for n in range(3)]
    assert [name(op) for op in ops] == [(100, 0), (100, 1), (100, 2)]
    assert [op.row_lsn for op in ops] == [90, 91, 92]
    assert (ops[0].xid, ops[0].commit_time) == (5, 7)


def test_a_type_that_is_not_built_in_is_known_by_its_name() -> None:
    assembler = Assembler(0)
    for oid, namespace, name_ in (
        (16400, "pg_catalog", "int8"),  # a domain
        (16401, "public", "mood"),
        (16402, "public", "_mood"),
    ):
        assembler.name_type(Type(oid, namespace, name_))
    oids = (23, 16400, 16401, 16402, 16403)
    columns = [Column(False, f"c{oid}", oid, -1) for oid in oids]
    table = assembler.describe(Relation(1, "public", "t", "d", columns), NO_KEYS)
    assert table.type_oids == (23, 20, 16401, ARRAY, 16403)


def test_each_transaction_counts_from_zero() -> None:
    assembler = begun(relation("id*"))
    assembler.row(insert("1"), 0)
    assembler.begin(Begin(200, 0, 6))
    assert name(assembler.row(insert("2"), 0)) == (200, 0)


def test_transaction_below_the_position_is_an_error() -> None:
    assembler = Assembler(101)
    with pytest.raises(WalstreamError, match="below 0/65"):
        assembler.begin(Begin(100, 0, 1))
    assembler.begin(Begin(101, 0, 1))


def test_alter_between_two_rows_moves_no_number() -> None:
    assembler = begun(relation("id*", "a"))
    first = assembler.row(insert("1", "x"), 0)
    assembler.describe(relation("id*", "a", "b"), NO_KEYS)
    second = assembler.row(insert("2", "y", "z"), 0)
    assert [name(first), name(second)] == [(100, 0), (100, 1)]
    assert first.table.columns == ("id", "a")
    assert second.table.columns == ("id", "a", "b")


def test_key_change_takes_two_numbers() -> None:
    assembler = begun(relation("id*", "v"))
    op = assembler.row(update(["1", None], ["2", "x"]), 0)
    assert op.key_changed
    assert name(op) == (100, 0)
    assert name(assembler.row(insert("3", "y"), 0)) == (100, 2)


def test_update_of_other_columns_takes_one_number() -> None:
    assembler = begun(relation("id*", "v"))
    assert not assembler.row(update(None, ["1", "x"]), 0).key_changed
    assert not assembler.row(update(["1", None], ["1", "x"]), 0).key_changed
    assert assembler.row(insert("3", "y"), 0).seq_id == 2


def test_under_full_only_the_primary_key_decides() -> None:
    history = KeyHistory([KeySet(0, primary_key=("id",))])
    assembler = begun(relation("id", "v", identity="f"), history)
    same = assembler.row(update(["1", "x"], ["1", "y"], whole=True), 0)
    moved = assembler.row(update(["1", "y"], ["2", "y"], whole=True), 0)
    assert (same.key_changed, moved.key_changed) == (False, True)
    assert same.table.key == (0,)


def test_under_full_without_primary_key_nothing_is_a_key_change() -> None:
    assembler = begun(relation("id", identity="f"))
    op = assembler.row(update(["1"], ["2"], whole=True), 0)
    assert not op.key_changed
    assert op.table.key == ()


def test_partition_key_counts_beside_the_row_key() -> None:
    history = KeyHistory([KeySet(0, partition_key=("org",))])
    assembler = begun(relation("id*", "org*", "v", identity="i"), history)
    op = assembler.row(update(["1", "9", None], ["1", "8", "x"]), 0)
    assert op.key_changed
    assert op.table.key == (0, 1)


def test_key_set_counts_from_its_lsn_on() -> None:
    history = KeyHistory([KeySet(0, ("id",)), KeySet(200, ("code",))])
    assembler = begun(relation("id", "code", identity="f"), history)
    old: list[Value] = ["1", "a"]
    assert not assembler.row(update(old, ["1", "b"], whole=True), 0).key_changed
    assembler.begin(Begin(199, 0, 1))
    assert not assembler.row(update(old, ["1", "b"], whole=True), 0).key_changed
    assembler.begin(Begin(200, 0, 1))
    after = assembler.row(update(old, ["1", "b"], whole=True), 0)
    assert after.key_changed
    assert after.table.key == (1,)


def test_every_later_key_set_has_its_turn() -> None:
    sets = [KeySet(0, ("a",)), KeySet(200, ("b",)), KeySet(300, ("c",))]
    assembler = begun(relation("a", "b", "c", identity="f"), KeyHistory(sets))
    keys = []
    for lsn in (150, 250, 350):
        assembler.begin(Begin(lsn, 0, 1))
        keys.append(assembler.row(insert("1", "2", "3"), 0).table.key)
    assert keys == [(0,), (1,), (2,)]


def test_null_and_empty_text_stay_apart() -> None:
    assembler = begun(relation("id*", "e", "n"))
    op = assembler.row(insert("1", "", None), 0)
    assert op.new == ["1", "", None]
    assert not op.absent


def test_unchanged_toast_without_old_row_is_absent() -> None:
    assembler = begun(relation("id*", "v"))
    op = assembler.row(update(None, ["1", UNCHANGED]), 0)
    assert op.new == ["1", UNCHANGED]
    assert op.absent


def test_unchanged_toast_is_filled_from_a_whole_old_row() -> None:
    history = KeyHistory([KeySet(0, ("id",))])
    assembler = begun(relation("id", "v", "n", identity="f"), history)
    op = assembler.row(
        update(["1", "big", None], ["1", UNCHANGED, UNCHANGED], whole=True), 0
    )
    assert op.new == ["1", "big", None]
    assert not op.absent


def test_unchanged_toast_of_the_key_is_filled_from_an_old_key() -> None:
    assembler = begun(relation("id*", "v"))
    op = assembler.row(update(["big", None], [UNCHANGED, UNCHANGED]), 0)
    assert op.new == ["big", UNCHANGED]
    assert op.absent
    assert not op.key_changed


def test_insert_that_entered_a_row_filter_may_be_absent() -> None:
    assembler = begun(relation("id*", "v"))
    assert assembler.row(insert("1", UNCHANGED), 0).absent


def test_old_key_carries_no_other_column() -> None:
    assembler = begun(relation("id*", "n", "v"))
    op = assembler.row(Delete(1, ["1", None, None], old_whole=False), 0)
    assert op.old == ["1", OMITTED, OMITTED]
    assert op.absent


def test_old_key_of_all_columns_is_whole() -> None:
    assembler = begun(relation("a*", "b*"))
    op = assembler.row(Delete(1, ["1", "2"], old_whole=False), 0)
    assert op.old == ["1", "2"]
    assert not op.absent


def test_null_of_a_whole_old_row_is_a_null() -> None:
    assembler = begun(relation("id", "v", identity="f"))
    op = assembler.row(Delete(1, ["1", None], old_whole=True), 0)
    assert op.old == ["1", None]
    assert not op.absent


def root_with(
    *leaves: Relation, root: Relation, history: KeyHistory = NO_KEYS
) -> Assembler:
    """Describe a partition root as pgoutput does: with each leaf, before its first row.

    The first row of each is an insert.
    """
    assembler = Assembler(0)
    assembler.begin(Begin(100, commit_time=7, xid=5))
    for leaf in leaves:
        meet(assembler, root, leaf, history)
    assembler.begin(Begin(110, commit_time=7, xid=5))
    return assembler


def meet(
    assembler: Assembler,
    root: Relation,
    leaf: Relation,
    history: KeyHistory = NO_KEYS,
) -> None:
    assembler.describe(root, history)
    assembler.describe(leaf, NO_KEYS)
    assembler.row(insert(*["0"] * len(root.columns)), 0)


ID = KeyHistory([KeySet(0, ("id",))])
FULL_ROOT = relation("id", "n", "v", identity="f")
FULL_LEAF = relation("id", "n", "v", identity="f", oid=8, name="t_full")
KEY_LEAF = relation("id*", "n", "v", oid=9, name="t_key")
OTHER_LEAF = relation("id", "n*", "v", identity="i", oid=10, name="t_other")


def test_null_of_a_partition_roots_old_row_is_not_believed() -> None:
    """A root's FULL does not reach its leaves: see partitioned_false_null.sql."""
    assembler = root_with(FULL_LEAF, KEY_LEAF, root=FULL_ROOT, history=ID)
    deleted = assembler.row(Delete(1, ["1", None, "x"], old_whole=True), 0)
    assert deleted.old == ["1", OMITTED, "x"]
    assert deleted.absent
    changed = assembler.row(
        update(["1", None, None], ["2", "10", UNCHANGED], whole=True), 0
    )
    assert changed.new == ["2", "10", UNCHANGED]
    assert changed.key_changed
    assert changed.absent


def test_null_of_a_root_whose_leaves_are_all_full_is_one() -> None:
    assembler = root_with(FULL_LEAF, root=FULL_ROOT, history=ID)
    assert assembler.row(Delete(1, ["1", None, "x"], old_whole=True), 0).old == [
        "1",
        None,
        "x",
    ]


def test_what_a_full_leafs_old_row_carries_is_taken_under_its_roots_key() -> None:
    """Marked as the root's key, it has all the same what the leaf logged."""
    root = relation("id*", "n", "v", "w")
    leaf = relation("id", "n", "v", "w", identity="f", oid=8, name="t_full")
    assembler = root_with(leaf, root=root, history=ID)
    changed = assembler.row(
        update(["1", None, "x", None], ["2", "10", UNCHANGED, UNCHANGED]), 0
    )
    assert changed.old == ["1", OMITTED, "x", OMITTED]
    assert changed.new == ["2", "10", "x", UNCHANGED]
    assert changed.key_changed
    assert changed.absent
    gone = assembler.row(Delete(1, ["1", "2", "x", "y"], old_whole=False), 0)
    assert gone.old == ["1", "2", "x", "y"]
    assert not gone.absent


def test_old_rows_are_believed_from_the_leafs_next_description_on() -> None:
    """The ALTER of a leaf counts where the stream tells it, backlog or not."""
    assembler = root_with(KEY_LEAF, root=FULL_ROOT, history=ID)
    before = assembler.row(Delete(1, ["1", None, None], old_whole=True), 0)
    whole = relation("id", "n", "v", identity="f", oid=9, name="t_key")
    meet(assembler, FULL_ROOT, whole, ID)
    after = assembler.row(Delete(1, ["1", None, None], old_whole=True), 0)
    assert before.old == ["1", OMITTED, OMITTED]
    assert after.old == ["1", None, None]


def test_untrusted_old_row_stays_so_behind_a_key_boundary() -> None:
    history = KeyHistory([KeySet(0, ("id",)), KeySet(200, ("n",))])
    leaf = relation("id*", "n*", oid=9, name="t_key")
    root = relation("id", "n", "v", identity="f")
    assembler = root_with(leaf, root=root, history=history)
    assembler.begin(Begin(200, 0, 1))
    op = assembler.row(Delete(1, ["1", "2", None], old_whole=True), 0)
    assert op.old == ["1", "2", OMITTED]


ROOT = relation("id*", "n", "v")


@pytest.mark.parametrize(
    ("root", "history", "message"),
    [
        (ROOT, NO_KEYS, Delete(1, [None, "a", None], old_whole=False)),
        (ROOT, NO_KEYS, update([None, "a", None], ["1", "b", "x"])),
        (ROOT, NO_KEYS, update(None, ["2", "a", "x"])),
        (FULL_ROOT, ID, Delete(1, [None, "a", None], old_whole=True)),
        (FULL_ROOT, ID, update([None, "a", None], ["1", "b", "x"], whole=True)),
        (FULL_ROOT, ID, update(None, ["2", "a", "x"])),
    ],
)
def test_a_leaf_whose_identity_lacks_the_roots_key_stops(
    root: Relation, history: KeyHistory, message: Update | Delete
) -> None:
    assembler = root_with(OTHER_LEAF, root=root, history=history)
    assembler.row(insert("1", "a", "x"), 0)
    with pytest.raises(HistoryError, match=r"public\.t'") as error:
        assembler.row(message, 0)
    assert "0/6E, 1" in str(error.value)
    assert "'id'" in str(error.value)
    assert (
        error.value.repair.sql
        == 'ALTER TABLE "public"."t_other" REPLICA IDENTITY FULL;'
    )


def test_a_null_in_an_identity_column_stops_without_any_leaf() -> None:
    assembler = begun(ROOT)
    with pytest.raises(HistoryError, match="'id' of its key was not sent"):
        assembler.row(Delete(1, [None, "a", None], old_whole=False), 0)


def test_a_leaf_without_identity_has_inserts_alone_and_stops_nothing() -> None:
    leaf = relation("id", "n", "v", identity="n", oid=9, name="t_insert")
    assembler = root_with(leaf, KEY_LEAF, root=ROOT)
    assert assembler.row(update(None, ["2", "a", "x"]), 0).new == ["2", "a", "x"]


def test_tables_that_are_truncated_together_are_no_root_and_leaf() -> None:
    assembler = Assembler(0)
    assembler.begin(Begin(100, 0, 1))
    assembler.describe(FULL_ROOT, ID)
    assembler.describe(OTHER_LEAF, NO_KEYS)
    assembler.truncate(Truncate(0, (1, 10)), 0)
    assert assembler.row(Delete(1, ["1", None, "x"], old_whole=True), 0).old == [
        "1",
        None,
        "x",
    ]


def test_a_partition_key_outside_of_the_identity_stops_what_could_change_it() -> None:
    history = KeyHistory([KeySet(0, (), ("org",))])
    assembler = begun(relation("id*", "org"), history)
    assembler.row(insert("1", "a"), 0)
    for message in (
        Delete(1, ["1", None], old_whole=False),
        update(None, ["1", "b"]),
        update(["1", None], ["2", "b"]),
    ):
        with pytest.raises(HistoryError, match="'org'"):
            assembler.row(message, 0)


def test_a_nullable_partition_key_of_a_whole_old_row_may_be_null() -> None:
    history = KeyHistory([KeySet(0, ("id",), ("org",))])
    assembler = begun(relation("id", "org", identity="f"), history)
    op = assembler.row(update(["1", None], ["1", "a"], whole=True), 0)
    assert op.key_changed


def test_a_renamed_primary_key_counts_from_its_first_row() -> None:
    sets = [
        KeySet(0, ("id",), (), ("id", "v"), 1),
        KeySet(200, ("uid",), (), ("uid", "v"), 1),
    ]
    assembler = begun(relation("uid", "v", identity="f"), KeyHistory(sets))
    op = assembler.row(update(["1", "x"], ["2", "x"], whole=True), 0)
    assert op.table.key == (0,)
    assert op.key_changed


def test_a_row_whose_primary_key_nobody_knows_stops() -> None:
    sets = [
        KeySet(0, ("id",), (), ("id", "v"), 1),
        KeySet(200, ("key",), (), ("key", "v"), 1),
    ]
    assembler = begun(relation("uid", "v", identity="f"), KeyHistory(sets))
    with pytest.raises(HistoryError, match=r"'public\.t'") as error:
        assembler.row(insert("1", "x"), 0)
    assert "uid, v" in error.value.hint


def test_an_equal_description_keeps_its_table() -> None:
    """What sinks keep is by Table, and ANALYZE has each described again."""
    assembler = begun(relation("id*", "v"))
    first = assembler.row(insert("1", "x"), 0).table
    for _ in range(3):
        assert assembler.describe(relation("id*", "v"), NO_KEYS) is first
    assert assembler.row(insert("1", "x"), 0).table is first
    others = [
        relation("id*", "v*"),
        relation("id*", "w"),
        relation("id*", "v", name="u"),
    ]
    assert all(assembler.describe(other, NO_KEYS) is not first for other in others)


def test_truncate_is_one_op_a_table_in_the_messages_order() -> None:
    assembler = begun(relation("id*"))
    assembler.describe(relation("id*", oid=2, name="u"), NO_KEYS)
    ops = assembler.truncate(Truncate(1, (2, 1)), 42)
    assert [op.table.name for op in ops] == ["u", "t"]
    assert [name(op) for op in ops] == [(100, 0), (100, 1)]
    assert {op.kind for op in ops} == {Kind.TRUNCATE}
    assert assembler.row(insert("1"), 0).seq_id == 2


def test_row_before_its_relation_is_an_error() -> None:
    assembler = Assembler(0)
    assembler.begin(Begin(100, 0, 1))
    with pytest.raises(WalstreamError, match="relation 1 came before"):
        assembler.row(insert("1"), 0)
    with pytest.raises(WalstreamError, match="relation 8 came before"):
        assembler.truncate(Truncate(0, (8,)), 0)


@pytest.mark.parametrize(
    "message",
    [
        Insert(1, ["1"], toasted=False),
        Update(1, None, False, ["1", "2", "3"], False),
        Update(1, ["1"], False, ["1", "2"], False),
        Delete(1, ["1"], old_whole=True),
    ],
)
def test_row_of_another_width_than_its_table_is_an_error(
    message: Insert | Update | Delete,
) -> None:
    assembler = begun(relation("id*", "v"))
    with pytest.raises(WalstreamError, match="values for 2 columns"):
        assembler.row(message, 0)


def test_numbers_are_counted_in_the_transaction_and_by_table() -> None:
    meters = TableMeters()
    assembler = Assembler(0)
    assembler.measure(meters)
    assert (assembler.place, assembler.count, assembler.meter.ops) == ((0, 0), 0, 0)
    assembler.begin(Begin(100, commit_time=7, xid=5))
    assembler.describe(relation("id*", "n"), NO_KEYS)
    assembler.row(insert("1", "a"), 90)
    assembler.row(update(["1", None], ["2", "a"]), 91)
    assert (assembler.place, assembler.count) == ((100, 3), 3)
    assert meters.of("public.t").ops == assembler.meter.ops == 3
    delete = assembler.row(Delete(1, ["2", None], False), 92)
    assert (name(delete), delete.key_changed) == ((100, 3), False)
    assert (assembler.count, assembler.meter.ops) == (4, 4)


def test_a_truncate_has_what_a_row_has() -> None:
    assembler = begun(relation("id*"))
    (op,) = assembler.truncate(Truncate(0, (1,)), 90)
    assert (name(op), op.row_lsn, op.xid, op.commit_time) == ((100, 0), 90, 5, 7)


def test_a_null_in_a_key_of_all_columns_stops() -> None:
    assembler = begun(relation("id*"))
    with pytest.raises(HistoryError):
        assembler.row(Delete(1, [None], False), 90)


def test_facts_that_are_learnt_at_an_op_are_its_own_and_those_behind_it() -> None:
    described = relation("id*")
    assembler = begun(described)
    first = assembler.row(insert("1"), 90)
    op = assembler.row(insert("2"), 91)
    assert assembler.relation(op) is described
    facts = FactHistory()
    facts.learn((op.lsn, op.seq_id), shape_of(described), [ColumnFacts(type_oid=25)])
    assembler.learn(op, facts)
    assert first.table.facts == ()
    assert [one.type_oid for one in op.table.facts] == [25]
    assert assembler.row(insert("3"), 92).table is op.table


def test_what_is_no_row_or_outside_of_a_transaction_is_told() -> None:
    message: Any = Truncate(0, (1,))
    # compiled, it is its types that say so
    with pytest.raises((WalstreamError, TypeError), match="Truncate"):
        begun(relation("id*")).row(message, 90)
    assert str(outside("a commit").args[0]) == "a commit came outside of a transaction"
