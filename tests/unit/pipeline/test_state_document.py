"""Documents are read by their type, or are damage that is named."""

from dataclasses import dataclass

import pytest

from walstream.errors import StateDamaged
from walstream.pipeline.state_document import StateDocument, StateDocuments
from walstream.testing import MemoryStore


@dataclass(frozen=True, slots=True)
class Kept:
    lsn: int
    names: tuple[str, ...] = ()


ONE = StateDocument("one", Kept)
MANY = StateDocuments("many/", Kept)


def test_what_is_written_is_read_until_it_is_deleted() -> None:
    positions = MemoryStore(ONE.entry(Kept(7, ("a", "b"))))
    assert positions.read("one") == {"lsn": 7, "names": ["a", "b"]}
    assert ONE.read(positions) == Kept(7, ("a", "b"))
    positions.write(ONE.entry(None))
    assert ONE.read(positions) is None


def test_a_field_of_later_is_passed_over_and_one_that_lacks_has_its_default() -> None:
    assert ONE.read(MemoryStore({"one": {"lsn": 7, "new": 1}})) == Kept(7)


@pytest.mark.parametrize("found", [[], {}, {"lsn": "7"}, {"lsn": 7, "names": "ab"}])
def test_what_does_not_fit_is_damage_that_names_the_document(found: object) -> None:
    with pytest.raises(StateDamaged, match="'one' does not fit"):
        ONE.read(MemoryStore({"one": found}))
    with pytest.raises(StateDamaged, match=r"'many/public\.a' does not fit"):
        MANY.read_all(MemoryStore({"many/public.a": found}))


def test_there_is_one_for_each_thing() -> None:
    positions = MemoryStore({"many": 1, "manyother": 2})
    assert (MANY.keys(positions), MANY.read_all(positions)) == ([], {})
    for name in ("b/c", "a"):
        positions.write(MANY.of(name).entry(Kept(len(name))))
    assert MANY.keys(positions) == ["a", "b/c"]
    assert MANY.of("b/c").read(positions) == Kept(3)
    assert MANY.read_all(positions) == {"a": Kept(1), "b/c": Kept(3)}
    positions.write(MANY.of("a").entry(None))
    assert MANY.keys(positions) == ["b/c"]
