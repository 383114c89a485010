"""What is asked of a table or a row before it is sent."""

from dataclasses import replace

from walstream.op import ColumnFacts, ReplicationOp
from walstream.pipeline.assembler import Assembler
from walstream.pipeline.column_history import FactHistory, Labels, shape_of
from walstream.pipeline.description import Descriptions
from walstream.pipeline.pgoutput import Begin, Column, Insert, Relation
from walstream.pipeline.root_key import Place
from walstream.pipeline.row_key import KeyHistory
from walstream.testing import MemoryCompanion

TEXT = ColumnFacts(type_oid=25, type_name="text")
MOOD = ColumnFacts(type_oid=99, type_name="mood", labels=("sad", "ok"))
RELATION = Relation(
    1, "public", "t", "d", [Column(True, "id", 25, -1), Column(False, "m", 99, -1)]
)


class Informed(MemoryCompanion):
    """Knows facts of columns; labels that it is asked for, from then on."""

    def __init__(self, *, patience: int = 0) -> None:
        super().__init__(patience=patience)
        self.asked: list[tuple[Place, Labels]] = []
        self.known = FactHistory()
        self.waits = 0  # times that it answers "not yet" at first

    def facts(  # type: ignore[override]
        self,
        relation: Relation,
        _xid: int = 0,
        place: Place = (0, 0),
        labels: Labels = (),
    ) -> FactHistory | None:
        if self.waits > 0:
            self.waits -= 1
            return None
        self.asked.append((place, labels))
        more = tuple(label for _, label in labels if label is not None)
        mood = replace(MOOD, labels=(*MOOD.labels, *more))
        self.known.learn(place, shape_of(relation), [TEXT, mood])
        return self.known


def begun(companion: MemoryCompanion) -> tuple[Assembler, Descriptions]:
    assembler = Assembler(0)
    assembler.begin(Begin(100, 0, 7))
    return assembler, Descriptions(companion, assembler)


def row(assembler: Assembler, *values: str | None) -> ReplicationOp:
    return assembler.row(Insert(1, list(values), False), 90)


def test_a_table_is_described_once_all_is_known_of_it() -> None:
    companion = Informed(patience=1)  # of keys
    companion.waits = 2
    assembler, descriptions = begun(companion)
    tried = [descriptions.describe(RELATION, 7) for _ in range(4)]
    assert tried == [False, False, False, True]
    assert row(assembler, "1", "ok").table.facts == (TEXT, MOOD)


def test_without_a_format_that_asks_a_table_has_no_facts() -> None:
    assembler, descriptions = begun(MemoryCompanion())
    assert descriptions.describe(RELATION, 7)
    op = row(assembler, "1", "new")
    assert op.table.facts == ()
    assert descriptions.complete(op)


def test_a_new_label_is_asked_for_at_its_row_and_counts_from_there() -> None:
    companion = Informed()
    assembler, descriptions = begun(companion)
    assert descriptions.describe(RELATION, 7)
    first = row(assembler, "1", "ok")
    assert descriptions.complete(first)
    second = row(assembler, "2", "glad")
    assert descriptions.complete(second)
    third = row(assembler, "3", "glad")
    assert descriptions.complete(third)
    assert companion.asked == [((100, 0), ()), ((100, 1), ((1, "glad"),))]
    assert first.table.facts[1].labels == ("sad", "ok")
    assert second.table.facts[1].labels == ("sad", "ok", "glad")
    assert third.table is second.table


def test_a_row_waits_for_the_answer() -> None:
    companion = Informed()
    assembler, descriptions = begun(companion)
    assert descriptions.describe(RELATION, 7)
    op = row(assembler, "1", "glad")
    companion.waits = 1
    tried = [descriptions.complete(op) for _ in range(2)]
    assert tried == [False, True]
    assert op.table.facts[1].labels[-1] == "glad"


def test_facts_that_change_between_two_transactions_count_from_the_later() -> None:
    companion = Informed()
    assembler, descriptions = begun(companion)
    assert descriptions.describe(RELATION, 7)
    required = replace(TEXT, not_null=True)
    companion.known.learn((200, 0), shape_of(RELATION), [required, MOOD])
    assembler.describe(RELATION, KeyHistory([]), companion.known)
    assert row(assembler, "1", None).table.facts[0] == TEXT
    assembler.begin(Begin(200, 0, 8))
    assert row(assembler, "1", None).table.facts[0] == required


def test_a_null_that_the_facts_forbid_is_asked_for() -> None:
    companion = Informed()
    assembler, descriptions = begun(companion)
    assert descriptions.describe(RELATION, 7)
    required = replace(TEXT, not_null=True)
    companion.known.learn((100, 0), shape_of(RELATION), [required, MOOD])
    assembler.describe(RELATION, KeyHistory([]), companion.known)
    assert descriptions.complete(row(assembler, None, "ok"))
    assert companion.asked[-1] == ((100, 0), ((0, None),))
