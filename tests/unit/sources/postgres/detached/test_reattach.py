"""A sink comes back from a worker that streamed from the source's own timeline."""

from pathlib import Path

import pytest

from walstream.errors import Transient
from walstream.pipeline.ports import Position
from walstream.pipeline.sent_position import GIVEN, GIVEN_ELSEWHERE, Given
from walstream.sources.postgres.detached import reattach
from walstream.sources.postgres.detached.detached_sink import (
    AWAY,
    BACK,
    DETACHED,
    ENDED,
    JOINS,
    DetachedSink,
    HandoverPoint,
    folder_of,
)
from walstream.sources.postgres.detached.reattach import ReattachAttempt, find_near
from walstream.sources.postgres.detached.slot_copy import Home
from walstream.state.lock import FolderLock
from walstream.state.store import LmdbStore

_NOTE = DetachedSink(AWAY, "s_a", 0.0, "it was away", 500)
_ENDED = HandoverPoint(900)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Make a source whose stream is on timeline 2, and its sink's own folder."""
    with LmdbStore(tmp_path / "app") as ours:
        documents = GIVEN.entry(Given(2, 600, 601)) | DETACHED.of("a").entry(_NOTE)
        ours.store(Position(600, 7, 2, "shop", "s"), documents)
    return Home("app", "", "s", tmp_path / "app")


def worker(home: Home, timeline: int) -> LmdbStore:
    """Open the state of a worker that has delivered all below 900."""
    theirs = LmdbStore(folder_of(home.folder, "a")).open()
    documents = GIVEN.entry(Given(timeline, 880, 881)) | ENDED.entry(_ENDED)
    theirs.store(Position(900, 7, timeline, "shop", "s_a"), documents)
    return theirs


def test_what_its_own_worker_sent_is_kept_with_a_sink_that_comes_back(
    home: Home,
) -> None:
    worker(home, 2).close()
    with LmdbStore(home.folder) as ours:
        assert ReattachAttempt("a", _NOTE, 700).run(home, ours) == 900
        assert GIVEN_ELSEWHERE.of("a").read(ours) == Given(2, 880, 881)
        back = DETACHED.of("a").read(ours)
    assert back is not None
    assert back.phase == BACK


@pytest.mark.parametrize("timeline", [1, 3])
def test_what_was_sent_on_another_timeline_is_taken_for_nothing(
    home: Home, monkeypatch: pytest.MonkeyPatch, timeline: int
) -> None:
    """Of an older one the new primary may have lost it, and would send it again."""
    monkeypatch.setattr(reattach, "_WITHIN_S", 0.1)
    worker(home, timeline).close()
    with LmdbStore(home.folder) as ours:
        with pytest.raises(Transient, match="did not catch up"):
            ReattachAttempt("a", _NOTE, 700).run(home, ours)
        assert DETACHED.of("a").read(ours) == _NOTE
        assert GIVEN_ELSEWHERE.of("a").read(ours) is None
        assert JOINS.of("a").read(ours) is None


@pytest.mark.parametrize(
    ("timeline", "before", "near"), [(2, 900, "a"), (2, 901, None), (1, 600, None)]
)
def test_a_worker_that_is_near_is_on_the_same_timeline(
    home: Home, timeline: int, before: int, near: str | None
) -> None:
    worker(home, timeline).close()
    lock = FolderLock(folder_of(home.folder, "a"))
    lock.acquire()
    with LmdbStore(home.folder) as ours:
        assert find_near(home, ours, ["a"], before) == near
        lock.release()
        assert find_near(home, ours, ["a"], before) is None
