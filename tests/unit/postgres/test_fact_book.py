"""What is known of columns is stored before it counts."""

from contextlib import nullcontext
from typing import Any

import pytest

from walstream.errors import Transient
from walstream.op import ColumnFacts
from walstream.pipeline.column_history import FACTS
from walstream.pipeline.pgoutput import Column, Relation
from walstream.postgres import column_facts, fact_book
from walstream.postgres.fact_book import FactBook
from walstream.testing import FailAfterWrite, MemoryStore, Reject, faulty

RELATION = Relation(7, "public", "t", "d", [Column(True, "id", 25, -1)])
LOST = Transient("cannot write: ENOSPC")


@pytest.mark.parametrize("fault", [Reject, FailAfterWrite])
def test_what_could_not_be_stored_is_stored_when_it_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, fault: type[Reject | FailAfterWrite]
) -> None:
    """Else a replay would send other schemas, and a detached sink wait for it."""
    found = (ColumnFacts(),)
    monkeypatch.setattr(fact_book, "wait_until_visible", lambda *_: None)
    monkeypatch.setattr(column_facts, "of_columns", lambda *_: found)
    store = MemoryStore()
    book = FactBook(faulty(store, write=[fault(LOST)]), unsent=0, oldest=0)

    def session() -> Any:
        return nullcontext()

    with pytest.raises(Transient):
        book.look(session, RELATION, 5, (500, 0), ())
    book.look(session, RELATION, 5, (500, 0), ())
    assert book.known(RELATION, (500, 0)) is not None
    assert FACTS.of("7").read(store) is not None
