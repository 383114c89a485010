"""What is kept of sinks that are not in the stream: read as it was written."""

from pathlib import Path

from walstream.sources.postgres.detached.record import (
    AWAY,
    DetachedSink,
    document,
    folder_of,
    join_document,
    join_of,
    joins,
    note_of,
    notes_of,
)
from walstream.testing import MemoryPositions

NOTE = DetachedSink(AWAY, "s_one", 12.5, "it failed", 100)


def test_a_note_is_read_as_it_was_written_until_it_is_forgotten() -> None:
    positions = MemoryPositions()
    positions.write({**document("one", NOTE), **document("two-2", NOTE)})
    assert notes_of(positions) == {"one": NOTE, "two-2": NOTE}
    positions.write(document("one", None))
    assert note_of(positions, "one") is None
    assert note_of(positions, "two-2") == NOTE


def test_where_a_sink_is_taken_back_is_kept_apart() -> None:
    positions = MemoryPositions()
    assert join_of(positions, "one") is None
    positions.write(join_document("one", 700))
    assert (join_of(positions, "one"), joins(positions)) == (700, ["one"])
    positions.write(join_document("one", None))
    assert joins(positions) == []


def test_its_own_state_is_in_the_source_s() -> None:
    assert folder_of(Path("state/app"), "one") == Path("state/app/away/one")
