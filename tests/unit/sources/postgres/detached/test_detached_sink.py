"""What is kept of sinks that are not in the stream: read as it was written."""

from pathlib import Path

from walstream.sources.postgres.detached.detached_sink import (
    AWAY,
    DETACHED,
    ENDED,
    JOINS,
    DetachedSink,
    HandoverPoint,
    folder_of,
)
from walstream.testing import MemoryStore

NOTE = DetachedSink(AWAY, "s_one", 12.5, "it failed", 100)


def test_a_note_is_read_as_it_was_written_until_it_is_forgotten() -> None:
    positions = MemoryStore(
        {**DETACHED.of("one").entry(NOTE), **DETACHED.of("two-2").entry(NOTE)}
    )
    assert DETACHED.read_all(positions) == {"one": NOTE, "two-2": NOTE}
    positions.write(DETACHED.of("one").entry(None))
    assert DETACHED.of("one").read(positions) is None
    assert DETACHED.of("two-2").read(positions) == NOTE


def test_where_a_sink_is_taken_back_is_kept_apart() -> None:
    positions, join = MemoryStore(), JOINS.of("one")
    assert join.read(positions) is None
    positions.write(join.entry(HandoverPoint(700)))
    assert join.read(positions) == HandoverPoint(700)
    assert (JOINS.keys(positions), ENDED.read(positions)) == (["one"], None)
    positions.write(join.entry(None))
    assert JOINS.keys(positions) == []


def test_its_own_state_is_in_the_source_s() -> None:
    assert folder_of(Path("state/app"), "one") == Path("state/app/away/one")
