"""Each replay makes another mark, and one sink's is its own."""

from walstream.kafka.replay_mark import (
    REPLAY,
    REPLAYS,
    ReplayMark,
    joined,
    replay_entry,
    sink_replay,
)
from walstream.testing.memory import MemoryStore


def test_a_sinks_mark_is_no_other_ones() -> None:
    store = MemoryStore()
    store.write(replay_entry("a"))
    assert REPLAY.read(store) is None
    assert REPLAYS.of("b").read(store) is None
    own = REPLAYS.of("a").read(store)
    store.write(replay_entry("a"))
    assert REPLAYS.of("a").read(store) != own


def test_what_counts_is_another_mark_after_either() -> None:
    one, other = ReplayMark("1"), ReplayMark("2")
    assert joined(None, None) is None
    assert joined(one, None) == one, "as positions have it that are there"
    found = {joined(one, other), joined(one, None), joined(None, other)}
    assert len(found) == 3


def test_a_sinks_own_mark_is_copied() -> None:
    store, theirs = MemoryStore(), MemoryStore()
    assert sink_replay(store, "a") == {}
    store.write(replay_entry("a"))
    theirs.write(sink_replay(store, "a"))
    assert REPLAYS.of("a").read(theirs) == REPLAYS.of("a").read(store) is not None
