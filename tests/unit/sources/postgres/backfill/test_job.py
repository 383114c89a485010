"""A job's figures. What drivers do is shown by tests/integration and tests/fault."""

import time
from typing import Any

import pytest

from walstream.errors import Restart, Transient
from walstream.op import Table
from walstream.pipeline.backoff import Backoff
from walstream.pipeline.shutdown import Stop, Waker
from walstream.sources.postgres.backfill import job as jobs
from walstream.sources.postgres.backfill.chunk import (
    Chunk,
    ChunkRelation,
    KeyRange,
    PageRange,
    Span,
)
from walstream.sources.postgres.backfill.job import Job, JobProgress
from walstream.sources.postgres.backfill.task_factory import (
    SnapshotOrder,
    TaskSnapshot,
)
from walstream.spark.driver.messages import Failed, Finished
from walstream.spark.outcome import ChunkDone, ChunkFailed, ChunkPostponed


def test_time_left_follows_from_what_is_done() -> None:
    progress = JobProgress(chunks=4, size=1000, began=time.monotonic() - 10)
    progress.chunks_done, progress.size_done, progress.rows = 1, 250, 500
    told = progress.report()
    assert told.share == 0.25
    assert told.left_s == pytest.approx(30, abs=1)
    assert told.rows_per_s == pytest.approx(50, abs=2)


def test_without_a_figure_nothing_is_promised() -> None:
    told = JobProgress(chunks=1, size=0, began=time.monotonic()).report()
    assert told.share == 0
    assert told.left_s is None


class Telling:
    """A driver that says what a test has it say, order by order."""

    def __init__(self, *answers: list[Any]) -> None:
        self.answers = [list(answer) for answer in answers]
        self.orders: list[list[Chunk]] = []
        self._left: list[Any] = []

    def __call__(self, _address: str) -> "Telling":
        return self

    def order(self, order: SnapshotOrder) -> None:
        self.orders.append(list(order.chunks))
        self._left = self.answers.pop(0)

    def hear(self, _wait_s: float) -> Any:
        return self._left.pop(0) if self._left else Finished()

    def close(self) -> None:
        pass


class Heard:
    """What a job said of its tables."""

    def __init__(self) -> None:
        self.ended: list[tuple[str, int]] = []
        self.lost: list[str] = []

    def done(self, table: str, rows: int) -> None:
        self.ended.append((table, rows))

    def given_up(self, table: str, why: str) -> None:
        del why
        self.lost.append(table)

    def counted(self, chunk: Chunk, done: ChunkDone) -> None:
        pass

    def look(self, *, now: bool = False) -> None:
        pass


def chunk(number: int, name: str, span: Span = None, *keys: int) -> Chunk:
    table = Table("public", name, ("id",), keys)
    return Chunk(number, ChunkRelation("public", name, number, table), span)


ORDERED = KeyRange(("id",), None, None)


def ran(
    monkeypatch: pytest.MonkeyPatch, driver: Telling, *chunks: Chunk
) -> tuple[Heard, list[tuple[str, int]], Job]:
    """Run the chunks; give what was said, and what was emptied by which number."""
    monkeypatch.setattr(jobs, "Driver", driver)
    monkeypatch.setattr(Backoff, "next", lambda _: 0.0)
    order = SnapshotOrder("app", TaskSnapshot("1-1", 99, b""), {}, chunks, "")
    heard, emptied = Heard(), list[tuple[str, int]]()

    def empty(table: Table, lsn: int, number: int) -> None:
        assert lsn == 99
        emptied.append((table.name, number))

    job = Job(order, heard, "", empty)
    assert job.run(Stop(Waker(), 1.0))
    return heard, emptied, job


def put_back(number: int) -> ChunkPostponed:
    return ChunkPostponed(number, Transient("refused"))


def test_a_chunk_that_is_put_back_comes_again_until_it_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    driver = Telling(*[[put_back(1)]] * 20, [ChunkDone(1, 3, 9)], [ChunkDone(2, 4, 9)])
    first, second = chunk(1, "a", ORDERED, 0), chunk(2, "a", ORDERED, 0)
    heard, _, job = ran(monkeypatch, driver, first, second)
    assert heard.ended == [("public.a", 7)]
    assert heard.lost == []
    assert driver.orders[:2] == [[first, second]] * 2
    assert driver.orders[-1] == [second]
    assert job.progress.waits == ""


def test_topics_that_are_to_be_found_anew_end_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A drive under the same order would meet them as they were."""
    driver = Telling([Failed(Restart("topic 't' takes smaller records"))])
    with pytest.raises(Restart):
        ran(monkeypatch, driver, chunk(1, "a", ORDERED, 0))
    assert len(driver.orders) == 1


def test_what_is_put_back_is_told_while_nothing_gets_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    driver = Telling([put_back(1)], [ChunkFailed("no more")])
    monkeypatch.setattr(jobs, "Driver", driver)
    monkeypatch.setattr(Backoff, "next", lambda _: 0.0)
    chunks = [chunk(1, "a", ORDERED, 0)]
    order = SnapshotOrder("app", TaskSnapshot("1-1", 99, b""), {}, chunks, "")
    job = Job(order, Heard(), "", lambda *_: None)
    driver.answers[1] = [Failed(ChunkFailed("Spark: is broken"))]
    with pytest.raises(ChunkFailed):
        job.run(Stop(Waker(), 1.0))
    assert job.progress.report().waits == "refused"


def test_rows_that_come_in_no_order_have_new_numbers_at_each_attempt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    driver = Telling(
        [put_back(1), put_back(2), put_back(3)],
        [Failed(Transient("the JVM is gone"))],
        [ChunkDone(number, 1, 1) for number in (1, 2, 3)],
    )
    chunks = (
        chunk(1, "ordered", ORDERED, 0),
        chunk(2, "keyed", None, 0),
        chunk(3, "view"),
    )
    _, emptied, _ = ran(monkeypatch, driver, *chunks)
    numbers = [[one.first_seq_id >> 32 for one in order] for order in driver.orders]
    assert numbers[0] == [1, 2, 3]
    assert [one[0] for one in numbers] == [1, 1, 1]  # its order repeats
    given = [number for one in numbers for number in one[1:]]
    given += [number for _, number in emptied]
    assert len(set(given)) == len(given)
    # nothing tells a view's rows from those of the attempt before
    assert [name for name, _ in emptied] == ["view", "view"]
    for (_, number), order in zip(emptied, numbers[1:], strict=True):
        assert number < order[2]


def test_a_root_without_a_key_begins_anew_with_its_foreign_leaves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What repeats waits for them, so that no emptying takes it away."""
    driver = Telling(
        [ChunkDone(1, 3, 9), put_back(3)],
        [ChunkDone(1, 4, 9), ChunkDone(3, 5, 9), ChunkDone(4, 1, 9)],
        [put_back(2)],
        [ChunkDone(2, 6, 9)],
    )
    one, heap, other = (
        chunk(1, "root"),
        chunk(2, "root", PageRange(0, 9)),
        chunk(3, "root"),
    )
    keyed = chunk(4, "view", None, 0)
    heard, emptied, job = ran(monkeypatch, driver, one, heap, other, keyed)
    orders = [[one.number for one in order] for order in driver.orders]
    assert orders == [[1, 3, 4], [3, 4, 1], [2], [2]]
    assert emptied == [("root", 5)]
    numbers = [[one.sent_as or one.number for one in order] for order in driver.orders]
    assert numbers == [[1, 3, 4], [6, 7, 8], [2], [2]]
    assert heard.ended == [("public.view", 1), ("public.root", 15)]
    assert (job.progress.rows, job.progress.chunks_done) == (16, 4)


def test_a_chunk_whose_workers_die_each_time_costs_its_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    died = ChunkPostponed(1, Transient("chunk 1: the worker died"), died=True)
    driver = Telling(*[[died]] * 3, [died, ChunkDone(2, 4, 9)])
    heard, _, _ = ran(monkeypatch, driver, chunk(1, "deadly"), chunk(2, "b", ORDERED))
    assert heard.lost == ["public.deadly"]
    assert heard.ended == [("public.b", 4)]


def test_a_chunk_whose_workers_died_some_times_costs_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    died = ChunkPostponed(1, Transient("chunk 1: the worker died"), died=True)
    driver = Telling(*[[died]] * 3, [ChunkDone(1, 3, 9), ChunkDone(2, 4, 9)])
    heard, _, _ = ran(monkeypatch, driver, chunk(1, "a"), chunk(2, "b", ORDERED))
    assert heard.lost == []
    assert sorted(heard.ended) == [("public.a", 3), ("public.b", 4)]
