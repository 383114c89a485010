"""An op's name and an update's two halves."""

import pickle

from walstream.op import ColumnFacts, Kind, ReplicationOp, Table, halves
from walstream.row import OMITTED

TABLE = Table("s", "t", ("id", "v"), key=(0,))


def test_full_name_is_what_mappings_spell() -> None:
    assert TABLE.full_name == "s.t"


def test_key_change_becomes_delete_and_insert_under_two_numbers() -> None:
    update = ReplicationOp(
        Kind.UPDATE,
        TABLE,
        lsn=7,
        seq_id=3,
        old=["1", OMITTED],
        new=["2", "x"],
        absent=True,
        key_changed=True,
        row_lsn=5,
        xid=9,
        commit_time=11,
    )
    delete, insert = halves(update)
    assert delete == ReplicationOp(
        Kind.DELETE,
        TABLE,
        lsn=7,
        seq_id=3,
        old=["1", OMITTED],
        absent=True,
        row_lsn=5,
        xid=9,
        commit_time=11,
    )
    assert insert == ReplicationOp(
        Kind.INSERT,
        TABLE,
        lsn=7,
        seq_id=4,
        new=["2", "x"],
        row_lsn=5,
        xid=9,
        commit_time=11,
    )


def test_tables_are_told_apart_by_identity() -> None:
    assert Table("s", "t", ("id",)) != Table("s", "t", ("id",))


def test_ops_and_tables_go_to_other_processes() -> None:
    op = ReplicationOp(Kind.INSERT, TABLE, 7, 3, new=["1", None], info=b"x")
    again = pickle.loads(pickle.dumps(op))  # noqa: S301 - our own
    table, again.table = again.table, TABLE
    assert again == op
    assert repr(table) == repr(TABLE)


def test_facts_of_columns_go_with_their_table() -> None:
    facts = ColumnFacts(
        not_null=True, default="'x'::mood", type_oid=16500, type_name="mood",
        base_oid=1, base_name="b", base_modifier=2, element_oid=3, element_name="e",
        labels=("x", "y"),
    )  # fmt: skip
    table = Table("s", "t", ("a",), oid=5, modifiers=(6,), facts=(facts,))
    again = pickle.loads(pickle.dumps(table))  # noqa: S301 - our own
    assert repr(again) == repr(table)
    assert again.facts == (facts,)
    assert hash(again.facts[0]) == hash(facts)
