"""Ids in a state folder: of one sink and registry, many in one write."""

import threading
from collections.abc import Mapping

import pytest

from tests.support.deadline import wait_until
from walstream.config.registry import Registry
from walstream.errors import Transient
from walstream.formats.encodings.subject import SchemaId, SubjectSchema
from walstream.kafka.registry.id_store import IdStore
from walstream.kafka.registry.stored_schema import SCHEMAS, StoredSchema
from walstream.testing.memory import MemoryStore

TOLD = Registry(url="http://me:pw@r:8081")
T, U = SubjectSchema("t-value", "{}"), SubjectSchema("u-value", "{}")


class Store(MemoryStore):
    """One whose writes take as long as the test wants, or fail."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[int] = []
        self.began = threading.Event()
        self.goes_on = threading.Event()
        self.goes_on.set()
        self.full = False

    def write(self, documents: Mapping[str, object]) -> None:
        self.began.set()
        self.goes_on.wait(60)
        if self.full:
            raise Transient("no room")
        self.writes.append(len(documents))
        super().write(documents)


def test_what_is_kept_is_found_by_its_sink_and_registry() -> None:
    store = MemoryStore()
    kept = IdStore("k", TOLD, store)
    assert kept.find(T) is None
    kept.keep(T, SchemaId(7, "text"))
    assert kept.find(T) == StoredSchema(7, "t-value", "http://r:8081", text="text")
    assert IdStore("k2", TOLD, store).find(T) is None
    assert IdStore("k", Registry(url="http://other"), store).find(T) is None


def test_those_of_before_are_doubted() -> None:
    store = MemoryStore()
    kept, other = IdStore("k", TOLD, store), IdStore("k2", TOLD, store)
    for one in (kept, other):
        one.keep(T, SchemaId(7))
        one.keep(U, SchemaId(8))
    kept.replace([(T, SchemaId(9))])
    found = {
        name: (one.id, one.doubted) for name, one in SCHEMAS.read_all(store).items()
    }
    assert found == {
        f"k/{T.digest}": (9, False),
        f"k/{U.digest}": (8, True),
        f"k2/{T.digest}": (7, False),
        f"k2/{U.digest}": (8, False),
    }


def test_those_that_come_during_a_write_share_the_next() -> None:
    store = Store()
    kept = IdStore("k", TOLD, store)
    every = [SubjectSchema(f"{number}", "{}") for number in range(9)]
    store.goes_on.clear()
    threads = [threading.Thread(target=kept.keep, args=(T, SchemaId(7)))]
    threads[0].start()
    assert store.began.wait(10)
    for number, one in enumerate(every):
        threads.append(threading.Thread(target=kept.keep, args=(one, SchemaId(number))))
        threads[-1].start()
    wait_until(lambda: len(kept._unwritten) == 9, 10, "all wait")  # noqa: SLF001
    store.goes_on.set()
    for thread in threads:
        thread.join(30)
    assert store.writes == [1, 9]
    for number, schema in enumerate(every):
        found = kept.find(schema)
        assert found is not None
        assert found.id == number


def test_who_waits_hears_of_a_write_that_failed() -> None:
    """And what was not written is, by who comes when there is room."""
    store = Store()
    kept = IdStore("k", TOLD, store)
    store.full = True
    for one in (T, U):
        with pytest.raises(Transient):
            kept.keep(one, SchemaId(7))
    assert kept.find(T) is None
    store.full = False
    kept.keep(U, SchemaId(8))
    assert [one and one.id for one in map(kept.find, (T, U))] == [7, 8]
