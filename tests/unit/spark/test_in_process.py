"""Chunks without Spark: each outcome once, tries as many as Spark's, ends that end."""

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.support.deadline import wait_until
from walstream.errors import RecordRefused, SlotLost, Transient
from walstream.spark import in_process
from walstream.spark.outcome import (
    ChunkDone,
    ChunkFailed,
    ChunkPostponed,
    ChunkRefused,
    Unreadable,
)

Outcome = ChunkDone | ChunkPostponed | ChunkRefused


@dataclass(frozen=True)
class Piece:
    """A chunk, as a run sees it."""

    number: int
    repeats: bool = True


def run(
    task: Callable[[Piece], Outcome],
    pieces: list[Piece],
    at_once: int = 2,
    on_turn: Callable[[], None] = lambda: None,
) -> list[Outcome]:
    heard: list[Outcome] = []
    whole = in_process.InProcessRun(pieces, at_once)
    try:
        whole.run(task, heard.append, on_turn)
    finally:
        whole.wait()
    return heard


def done(piece: Piece) -> Outcome:
    return ChunkDone(piece.number, 1, 1)


def pieces(count: int) -> list[Piece]:
    return [Piece(number) for number in range(1, count + 1)]


@pytest.mark.parametrize("at_once", [1, 3, 100])
def test_each_outcome_is_heard_once(at_once: int) -> None:
    heard = run(done, pieces(50), at_once)
    assert sorted(one.number for one in heard) == list(range(1, 51))


def test_one_at_a_time_keeps_their_order() -> None:
    assert [one.number for one in run(done, pieces(20), 1)] == list(range(1, 21))


@pytest.mark.parametrize("at_once", [1, 2, 3])
def test_no_more_run_at_a_time_than_may(at_once: int) -> None:
    running: set[int] = set()
    most = Counter[str]()
    guard = threading.Lock()

    def counted(piece: Piece) -> Outcome:
        with guard:
            running.add(piece.number)
            most["at once"] = max(most["at once"], len(running))
        threading.Event().wait(0.005)
        with guard:
            running.discard(piece.number)
        return done(piece)

    run(counted, pieces(12), at_once)
    assert most["at once"] == at_once


def test_nothing_to_do_is_done() -> None:
    assert run(done, []) == []


@pytest.mark.parametrize("failures", [1, 3])
def test_what_fails_is_tried_as_often_as_spark_would(failures: int) -> None:
    tries = Counter[int]()

    def failing(piece: Piece) -> Outcome:
        tries[piece.number] += 1
        if piece.number == 2 and tries[2] <= failures:
            raise ChunkFailed("chunk 2: again")
        return done(piece)

    assert len(run(failing, pieces(3))) == 3
    assert tries == {1: 1, 2: failures + 1, 3: 1}


def test_what_fails_each_time_ends_the_run() -> None:
    tries = Counter[int]()

    def failing(piece: Piece) -> Outcome:
        tries[piece.number] += 1
        raise ChunkFailed(f"chunk {piece.number}: never")

    with pytest.raises(ChunkFailed, match="chunk 1: never"):
        run(failing, pieces(1))
    assert tries == {1: 4}


def test_what_would_come_in_another_order_is_not_tried_again_at_once() -> None:
    tries = Counter[int]()

    def failing(piece: Piece) -> Outcome:
        tries[piece.number] += 1
        raise ChunkFailed("chunk 1: the connection ended")

    (heard,) = run(failing, [Piece(1, repeats=False)])
    assert isinstance(heard, ChunkPostponed)
    assert heard.died
    assert str(heard.error) == "chunk 1: the connection ended"
    assert tries == {1: 1}


@pytest.mark.parametrize(
    ("refused", "raised"),
    [
        (Unreadable("chunk 1: no right"), ChunkFailed),
        (RecordRefused("too large"), ChunkFailed),
        (SlotLost("gone"), SlotLost),
    ],
)
def test_a_refusal_blames_the_chunk_or_the_source(
    refused: Exception, raised: type[Exception]
) -> None:
    def refusing(piece: Piece) -> Outcome:
        assert isinstance(refused, Unreadable | RecordRefused | SlotLost)
        return ChunkRefused(piece.number, refused)

    with pytest.raises(raised, match=r"chunk 1|gone"):
        run(refusing, pieces(1))


def test_a_task_with_a_part_for_each_table_is_asked_for_it() -> None:
    asked: list[int] = []

    class Task:
        def of(self, piece: Piece) -> Callable[[Piece], Outcome]:
            asked.append(piece.number)
            return done

        def __call__(self, piece: Piece) -> Outcome:
            raise AssertionError(piece)

    assert len(run(Task(), pieces(3), 1)) == 3
    assert asked == [1, 2, 3]


def test_who_ordered_may_end_it_and_what_runs_is_waited_for() -> None:
    began, leash = threading.Event(), threading.Event()
    ended: list[int] = []

    def tied(piece: Piece) -> Outcome:
        began.set()
        assert leash.wait(30)
        ended.append(piece.number)
        raise Transient("the job ended: its tasks stop")

    def leave() -> None:
        if began.is_set():
            raise EOFError

    whole = in_process.InProcessRun(pieces(9), 1)
    with pytest.raises(EOFError):
        whole.run(tied, lambda _: None, leave)
    assert not ended
    leash.set()
    whole.wait()
    assert ended == [1]  # and no later one began


def test_a_defect_of_a_task_is_raised_where_it_is_heard() -> None:
    def defect(_piece: Piece) -> Outcome:
        raise ZeroDivisionError

    before = threading.active_count()
    with pytest.raises(ZeroDivisionError):
        run(defect, pieces(3))
    wait_until(lambda: threading.active_count() <= before, 10, "its threads ended")
