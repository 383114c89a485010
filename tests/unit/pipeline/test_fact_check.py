"""What a table's facts forbid is found in either row, each once, in order."""

from walstream.op import ColumnFacts, Kind, ReplicationOp, Table
from walstream.pipeline.fact_check import FactCheck
from walstream.row import OMITTED, Row

MOOD = ColumnFacts(labels=("sad", "ok"))
MOODS = ColumnFacts(labels=("sad", "ok"), element_oid=99)  # an array: not looked at
TABLE = Table(
    "public",
    "t",
    ("id", "m", "n", "moods"),
    facts=(ColumnFacts(not_null=True), MOOD, ColumnFacts(), MOODS),
)


def update(old: Row | None, new: Row | None) -> ReplicationOp:
    return ReplicationOp(Kind.UPDATE, TABLE, 100, 0, old, new)


def test_what_is_allowed_is_not_found() -> None:
    check = FactCheck(TABLE)
    assert check.unknown(update(None, ["1", "ok", None, "{glad}"])) == ()
    assert check.unknown(update(["1", None, "x", None], None)) == ()
    assert check.unknown(update([OMITTED, OMITTED, OMITTED, OMITTED], None)) == ()


def test_labels_and_nulls_of_both_rows_are_found_once() -> None:
    rows = [None, "glad", None, None], [None, "low", None, None]
    found = FactCheck(TABLE).unknown(update(*rows))
    assert found == ((0, None), (1, "glad"), (1, "low"))


def test_a_table_without_facts_forbids_nothing() -> None:
    bare = Table("public", "t", ("id",))
    assert FactCheck(bare).unknown(ReplicationOp(Kind.INSERT, bare, 1, 0)) == ()
