"""What a sink lacks that was taken out of its source's sinks, and put back."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from walstream.pipeline.ports import Position
from walstream.sources.postgres.detached import feed_record
from walstream.sources.postgres.detached.detached_sink import (
    AWAY,
    COPYING,
    DETACHED,
    DROPPED,
    DetachedSink,
    folder_of,
)
from walstream.sources.postgres.detached.feed_record import FED, FeedRecord, follow
from walstream.sources.postgres.detached.slot_copy import Home
from walstream.state.store import LmdbStore

GAP = "changes from 0/64 to 0/96 were not sent to it"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home("app", "", "s", tmp_path / "app")


@pytest.fixture
def ours(home: Home) -> Iterator[LmdbStore]:
    with LmdbStore(home.folder) as positions:
        yield positions


def at(ours: LmdbStore, resume: int) -> None:
    ours.store(Position(resume, 7, 1, "shop", "s"))


def said(home: Home, ours: LmdbStore, *wanted: str) -> list[str]:
    """Begin a stream with these sinks; return the errors."""
    with capture_logs() as logs:
        follow(home, ours, wanted)
    return [
        f"{one['event']} {one['sink']}: {one.get('error', one.get('lsn'))}"
        for one in logs
        if one["log_level"] == "error"
    ]


def lacks(ours: LmdbStore) -> str:
    return feed_record.gaps_of(FED.read_all(ours)).get("b", "")


def test_one_that_is_put_back_is_told_what_came_meanwhile(
    home: Home, ours: LmdbStore
) -> None:
    assert said(home, ours, "a", "b") == []  # a first start: no position yet
    at(ours, 100)
    assert said(home, ours, "a", "b") == []
    assert said(home, ours, "a") == []
    assert "from 0/64 on were not sent" in lacks(ours)
    at(ours, 120)
    assert said(home, ours, "a") == []
    at(ours, 150)
    (error,) = said(home, ours, "a", "b")
    assert error.startswith("sink is among the source's sinks again")
    assert f"b: {GAP}" in error
    at(ours, 200)
    assert said(home, ours, "a", "b") == []  # once
    assert GAP in lacks(ours)


def test_one_that_is_back_before_a_change_came_lacks_nothing(
    home: Home, ours: LmdbStore
) -> None:
    at(ours, 100)
    for sinks in (["a", "b"], ["a"], ["a", "b"]):
        assert said(home, ours, *sinks) == []
    assert lacks(ours) == ""


@pytest.mark.parametrize(
    ("resume", "lacks"),
    [(200, (100, 150)), (120, (100, 120)), (100, (0, 0)), (90, (0, 0))],
)
def test_a_rewind_may_send_what_it_lacks(resume: int, lacks: tuple[int, int]) -> None:
    assert FeedRecord(100, 150).fed_from(resume) == FeedRecord(*lacks)


def test_one_that_leaves_again_lacks_what_it_lacked(
    home: Home, ours: LmdbStore
) -> None:
    at(ours, 200)
    ours.write(FED.of("b").entry(FeedRecord(100, 150)))
    said(home, ours, "a")
    at(ours, 300)
    assert "0/64 to 0/12C" in said(home, ours, "a", "b")[0]


@pytest.mark.parametrize(("phase", "left"), [(COPYING, 100), (DROPPED, 40), (AWAY, 40)])
def test_of_a_sink_out_of_the_stream_it_is_known_where_it_was(
    home: Home, ours: LmdbStore, phase: str, left: int
) -> None:
    """Also in a state that an older walstream wrote, which has no records."""
    at(ours, 100)
    ours.write(DETACHED.of("b").entry(DetachedSink(phase, "s_b", 0.0, "why", 40)))
    told = said(home, ours, "a")
    assert bool(told) == (phase == AWAY)
    assert FED.of("b").read(ours) == FeedRecord(left)


def test_its_own_worker_knows_best_how_far_it_came(home: Home, ours: LmdbStore) -> None:
    at(ours, 100)
    ours.write(DETACHED.of("b").entry(DetachedSink(AWAY, "s_b", 0.0, "why", 40)))
    with LmdbStore(folder_of(home.folder, "b")) as theirs:
        theirs.store(Position(70, 7, 1, "shop", "s_b"))
    (error,) = said(home, ours, "a")
    assert "it never gets the changes from here on b: 0/46" in error
    assert FED.of("b").read(ours) == FeedRecord(70)
