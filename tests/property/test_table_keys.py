"""Keys that a source goes by are those that it stored, whatever writes fail."""

from dataclasses import replace
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from tests.support.table_facts import table_facts
from walstream.errors import Transient
from walstream.pipeline.pgoutput import Column, Relation
from walstream.pipeline.root_key import ROOTS
from walstream.pipeline.row_key import KEYS
from walstream.postgres.catalog import Looked, TableFacts
from walstream.postgres.table_keys import KeyBook
from walstream.testing import FailAfterWrite, MemoryStore, Reject, faulty

NAME: Final = "public.t"
COLUMNS: Final = (("id", "code"), ("id", "code", "uid"), ("code", "id"))
FACTS: Final = table_facts(replica_identity="f", columns=COLUMNS[0], oid=7)
LOST: Final = Transient("cannot write: EIO")

facts = st.none() | st.builds(
    lambda columns, key, identity, kind: replace(
        FACTS,
        columns=columns,
        numbers=tuple(range(1, len(columns) + 1)),
        primary_key=key,
        replica_identity=identity,
        identity=key if identity == "d" else (),
        kind=kind,
    ),
    st.sampled_from(COLUMNS),
    st.sampled_from([(), ("id",), ("code",), ("id", "code")]),
    st.sampled_from("fd"),
    st.sampled_from("rp"),
)
descriptions = st.builds(
    lambda oid, columns, identity, marked: Relation(
        oid,
        "public",
        "t",
        identity,
        [Column(identity == "f" or one in marked, one, 25, -1) for one in columns],
    ),
    st.sampled_from([7, 8]),
    st.sampled_from(COLUMNS),
    st.sampled_from("fdn"),
    st.sampled_from([(), ("id",), ("code",)]),
)
faults = st.lists(st.sampled_from([None, None, Reject(LOST), FailAfterWrite(LOST)]))


@given(st.lists(st.tuples(descriptions, facts), max_size=8), faults)
def test_what_is_met_is_stored_before_rows_go_out(
    met: list[tuple[Relation, TableFacts | None]],
    script: list[Reject | FailAfterWrite | None],
) -> None:
    store = MemoryStore()
    book = KeyBook(faulty(store, write=[None, *script]), lambda *_: ("org",))
    book.learn({NAME: FACTS}, 100, 0)
    lsn = 200
    for relation, found in met:
        lsn += 100
        while True:  # as it is asked, each second
            lsn += 10
            try:
                looked = replace(found, oid=relation.oid) if found else None
                book.meet(relation, Looked(looked, lsn + 50), (lsn, 0))
            except Transient:
                continue
            break
        history = book.history(NAME)
        assert history is not None
        assert KEYS.of(NAME).read(store) == history.stored
        assert {oid: ROOTS.of(str(oid)).read(store) or () for oid in history.roots} == {
            oid: root.stored for oid, root in history.roots.items()
        }
        again = KeyBook(store, lambda *_: ("org",))
        assert [*again.regained()] == [*book.regained()]
