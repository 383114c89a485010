"""Copies of a slot that nobody reads are named, and no other."""

from contextlib import nullcontext
from pathlib import Path

import pytest

from walstream.pipeline.ports import Position
from walstream.pipeline.sent_position import GIVEN, GIVEN_ELSEWHERE, Given
from walstream.postgres import slot
from walstream.postgres.slot import Slot
from walstream.sources.postgres.detached import slot_copy
from walstream.sources.postgres.detached.detached_sink import DetachedSink, folder_of
from walstream.sources.postgres.detached.slot_copy import Home, forgotten
from walstream.state.store import LmdbStore


def copy(name: str, pid: int | None) -> Slot:
    return Slot(name, "logical", "pgoutput", "shop", pid, "reserved", None, 100)


def test_one_that_another_instance_reads_is_not_forgotten(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    there = {"s_a": copy("s_a", None), "s_b": copy("s_b", 7)}
    monkeypatch.setattr(slot_copy, "session", lambda _: nullcontext())
    monkeypatch.setattr(slot, "find", lambda _, name: there.get(name))
    home = Home("app", "", "s", tmp_path)
    assert forgotten(home, ["a", "b", "c"]) == ["s_a"]


@pytest.mark.parametrize(
    ("given", "before", "known"),
    [
        (Given(3, 900, 901), None, Given(3, 900, 901)),
        (None, None, None),
        # it came back from a worker that was ahead of the stream, and left at once
        (Given(3, 600, 601), Given(3, 900, 901), Given(3, 900, 901)),
        (None, Given(3, 900, 901), Given(3, 900, 901)),
    ],
)
def test_a_sinks_own_worker_knows_how_far_it_had_been_given_commits(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    given: Given | None,
    before: Given | None,
    known: Given | None,
) -> None:
    """A failover may lose the last of them: then it stops, as the source does."""
    monkeypatch.setattr(slot_copy, "session", lambda _: nullcontext())
    for act in ("drop", "copy"):
        monkeypatch.setattr(slot, act, lambda *_: None)
    home = Home("app", "", "s", tmp_path / "app")
    note = DetachedSink("copying", "s_a", 0.0, "it is away", 500)
    with LmdbStore(home.folder) as positions:
        elsewhere = GIVEN_ELSEWHERE.of("a").entry(before)
        positions.store(Position(700, 7, 3, "shop", "s"), elsewhere)
        slot_copy.make(home, positions, "a", note, given)
    with LmdbStore(folder_of(home.folder, "a")) as theirs:
        assert GIVEN.read(theirs) == known
        position = theirs.position()
    assert position == Position(500, 7, 3, "shop", "s_a")
