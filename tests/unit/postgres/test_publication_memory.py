"""What is remembered of publications is read back as it was written."""

from typing import Any, cast

import pytest

from walstream.errors import Transient
from walstream.postgres.publication_facts import Sighting
from walstream.postgres.publication_memory import PUBLICATIONS, Altered, Memory
from walstream.postgres.publication_watch import PublicationWatch
from walstream.testing import MemoryStore, Reject, faulty

SEEN = Sighting(9, frozenset({"insert"}), via_root=True, xmin=700)


def stored(memory: Memory) -> MemoryStore:
    return MemoryStore(PUBLICATIONS.entry(memory.stored("p")))


def test_a_memory_is_read_back_with_a_change_that_was_cut_short() -> None:
    after = Memory({"p": SEEN, "q": SEEN}, frozenset({"4"}))
    memory = Memory(
        {"p": SEEN, "q": SEEN}, frozenset({"4", "2/20"}), Altered("701", after)
    )
    found = PUBLICATIONS.read(stored(memory))
    assert found is not None
    assert Memory.of(found) == memory


def test_an_older_walstream_finds_what_it_knows() -> None:
    found = stored(Memory({"p": SEEN})).read("publications")
    assert isinstance(found, dict)
    assert (
        found["p"].items()
        >= {"oid": 9, "operations": ["insert"], "via_root": True, "tables": []}.items()
    )


def test_what_was_seen_counts_once_it_is_stored() -> None:
    """Else nothing would store it any more, and each start would see it again."""
    lost = Transient("cannot write: ENOSPC")
    store = faulty(MemoryStore(), write=[Reject(lost)])
    none = cast("Any", None)  # nothing is asked of a server
    watch = PublicationWatch("p", none, store.write, none, none, none, at_first=True)
    seen = Memory({}, frozenset({"1"}))
    with pytest.raises(Transient):
        watch.remember(none, seen)
    watch.remember(none, seen)
    assert watch.memory == seen
    assert PUBLICATIONS.read(store) is not None
