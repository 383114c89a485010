"""What is remembered of publications is read back as it was written."""

from walstream.postgres.publication_facts import Sighting
from walstream.postgres.publication_memory import PUBLICATIONS, Altered, Memory
from walstream.testing import MemoryStore

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
