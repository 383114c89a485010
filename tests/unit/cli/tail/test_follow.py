"""From where to where topics are read, and what happens when some come or go."""

import signal
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path

import pytest

from walstream.cli.tail import follow
from walstream.cli.tail.follow import Follower, Span
from walstream.errors import (
    ConfigError,
    PermissionLacking,
    TopicLost,
    Transient,
    WalstreamError,
)
from walstream.kafka.offsets import OffsetBounds, Partition
from walstream.kafka.topic_reader import TopicRecord

ALL = Span(from_beginning=True, until_end=True)


def gone(*partitions: Partition) -> TopicLost:
    error = TopicLost(f"records of {partitions[0].topic} are gone")
    error.partitions = frozenset(partitions)
    return error


class Shelf:
    """Topics in memory: a partition's end, and how far each is read."""

    def __init__(self, **ends: list[int]) -> None:
        self.ends = {name.replace("__", "."): end for name, end in ends.items()}
        self.firsts: dict[str, int] = {}  # what retention left
        self.next: dict[Partition, int] = {}
        self.lost: set[Partition] = set()  # read no further, and told
        self.away: list[WalstreamError] = []
        self.failing_bounds: list[WalstreamError] = []
        self.failing_poll: list[WalstreamError] = []

    def topics(self) -> dict[str, int]:
        if self.away:
            raise self.away.pop()
        return {name: len(ends) for name, ends in self.ends.items()}

    def bounds(self, topics: Iterable[str]) -> dict[Partition, OffsetBounds]:
        if self.failing_bounds:
            raise self.failing_bounds.pop()
        return {
            Partition(topic, number): OffsetBounds(self.firsts.get(topic, 0), end)
            for topic in topics
            for number, end in enumerate(self.ends[topic])
        }

    def since(
        self, partitions: Iterable[Partition], timestamp_ms: int
    ) -> dict[Partition, int | None]:
        """Find a time: the record at offset N is of N ms."""
        return {
            one: timestamp_ms
            if timestamp_ms < self.ends[one.topic][one.number]
            else None
            for one in partitions
        }

    def assign(self, offsets: Mapping[Partition, int]) -> None:
        self.next = dict(offsets)
        self.lost.clear()

    def add(self, offsets: Mapping[Partition, int]) -> None:
        assert not self.next.keys() & offsets.keys()
        self.next |= offsets

    def drop(self, partitions: Collection[Partition]) -> None:
        for one in partitions:
            del self.next[one]
            self.lost.discard(one)

    def poll(self, timeout_s: float) -> list[TopicRecord]:
        assert timeout_s < 1
        if self.failing_poll:
            raise self.failing_poll.pop()
        records = []
        lost = {
            one
            for one, offset in self.next.items()
            if offset < self.firsts.get(one.topic, 0) and one not in self.lost
        }
        if lost:
            self.lost |= lost
            raise gone(*sorted(lost))
        for one, offset in self.next.items():
            if one in self.lost:
                continue
            ends = self.ends.get(one.topic, [])
            end = ends[one.number] if one.number < len(ends) else 0
            records += [
                TopicRecord(*one, each, None, None, [], None)
                for each in range(offset, end)
            ]
            self.next[one] = max(offset, end)
        return records

    def reached(self, bounds: Mapping[Partition, OffsetBounds]) -> bool:
        return all(self.next[one] >= where.end for one, where in bounds.items())


@pytest.fixture(autouse=True)
def _look_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "_LOOK_S", 0.0)


class Watch:
    """A follower, what it told, and its reading, a turn at a time."""

    def __init__(self, shelf: Shelf, *wanted: str, span: Span | None = None) -> None:
        self.told: list[str] = []
        self.shelf = shelf
        self.follower = Follower(shelf, wanted, span or Span(), self.told.append)

    def read(self, turns: int = 3) -> list[tuple[str, int, int]]:
        left = iter(range(turns))
        batches = self.follower.batches(lambda: next(left, None) is None)
        return [
            (record.topic, record.partition, record.offset)
            for record in chain.from_iterable(batches)
        ]


def test_from_now_begins_at_the_ends() -> None:
    watch = Watch(Shelf(a=[3, 4]), "a")
    watch.follower.begin()
    assert watch.told == ["1 topic, 2 partitions, from now; Ctrl-C ends"]
    assert watch.read() == []
    watch.shelf.ends["a"] = [3, 5]
    assert watch.read() == [("a", 1, 4)]


def test_from_a_time_begins_there_or_at_the_end() -> None:
    since = datetime.fromtimestamp(0.003, UTC)
    watch = Watch(Shelf(a=[5, 2]), "a", span=Span(since=since))
    watch.follower.begin()
    assert watch.told == [
        "1 topic, 2 partitions, from 1970-01-01T00:00:00+00:00; Ctrl-C ends"
    ]
    assert watch.read() == [("a", 0, 3), ("a", 0, 4)]
    watch.shelf.ends["a"] = [5, 3]
    assert watch.read() == [("a", 1, 2)]


class Clocked(Shelf):
    """Records whose times are 1000 * offset."""

    def poll(self, timeout_s: float) -> list[TopicRecord]:
        return [
            replace(record, timestamp_ms=1000 * record.offset)
            for record in super().poll(timeout_s)
        ]

    def since(
        self, partitions: Iterable[Partition], timestamp_ms: int
    ) -> dict[Partition, int | None]:
        return super().since(partitions, timestamp_ms // 1000)


def test_what_is_older_than_the_time_is_not_shown_when_it_comes() -> None:
    since = datetime.fromtimestamp(4, UTC)
    watch = Watch(Clocked(a=[3, 6]), "?", span=Span(since=since))
    watch.follower.begin()
    assert len(watch.told) == 1
    assert watch.read() == [("a", 1, 4), ("a", 1, 5)]
    watch.shelf.ends = {"a": [6, 7], "b": [5]}
    assert watch.read() == [("a", 0, 4), ("a", 0, 5), ("a", 1, 6), ("b", 0, 4)]


def test_a_time_that_is_still_to_come_is_said_and_waited_for() -> None:
    since = datetime.now(UTC) + timedelta(hours=1)
    watch = Watch(Clocked(a=[3]), "a", span=Span(since=since))
    watch.follower.begin()
    assert watch.told[1:] == ["that time is in the future: nothing older is shown"]
    watch.shelf.ends = {"a": [9]}
    assert watch.read() == []


@pytest.mark.parametrize(
    "span", [ALL, Span(since=datetime.fromtimestamp(0.001, UTC))], ids=str
)
def test_what_is_deleted_before_it_was_read_is_passed_over(span: Span) -> None:
    watch = Watch(Shelf(a=[9], b=[2]), "?", span=span)
    watch.follower.begin()
    watch.shelf.firsts["a"] = 7
    found = watch.read(100)
    assert [one for one in found if one[0] == "a"] == [("a", 0, 7), ("a", 0, 8)]


def test_a_gap_in_what_is_read_is_an_error() -> None:
    watch = Watch(Shelf(a=[3]), "a", span=Span(from_beginning=True))
    watch.follower.begin()
    assert len(watch.read()) == 3
    watch.shelf.ends["a"], watch.shelf.firsts["a"] = [9], 5
    with pytest.raises(TopicLost, match="records of a are gone"):
        watch.read()


def test_a_topic_that_was_made_again_is_an_error() -> None:
    watch = Watch(Shelf(a=[9]), "a", span=ALL)
    watch.follower.begin()
    watch.shelf.ends["a"], watch.shelf.firsts["a"] = [3], 2
    with pytest.raises(TopicLost, match="records of a are gone"):
        watch.read()


def test_what_comes_after_the_start_lies_beyond_the_end() -> None:
    watch = Watch(Shelf(a=[2], b=[0]), "?", span=ALL)
    watch.follower.begin()
    assert watch.told == ["2 topics, 2 partitions, from the beginning until the end"]
    watch.shelf.ends = {"a": [3], "b": [7], "c": [1]}
    assert watch.read(100) == [("a", 0, 0), ("a", 0, 1)]


def test_topics_that_are_not_there_are_refused_or_waited_for() -> None:
    with pytest.raises(ConfigError):
        Watch(Shelf(b=[1]), "a").follower.begin()
    watch = Watch(Shelf(), "a*")
    watch.follower.begin(may_wait=True)
    watch.shelf.ends = {"a1": [2], "b": [2]}
    assert watch.read() == [("a1", 0, 0), ("a1", 0, 1)]
    assert watch.told[1:] == ["topic a1 has 1 new partition"]


def test_new_partitions_are_read_from_their_first_record() -> None:
    watch = Watch(Shelf(a=[5]), "a")
    watch.follower.begin()
    watch.shelf.ends["a"] = [5, 2, 0]
    assert watch.read() == [("a", 1, 0), ("a", 1, 1)]
    assert watch.told[1:] == ["topic a has 2 new partitions"]


@pytest.mark.parametrize("error", [Transient("no leader yet"), TopicLost("unknown")])
def test_new_topic_that_is_not_ready_is_asked_again(error: WalstreamError) -> None:
    watch = Watch(Shelf(), "a")
    watch.follower.begin(may_wait=True)
    assert watch.read(1) == []
    watch.shelf.ends = {"a": [1]}
    watch.shelf.failing_bounds = [error]
    assert watch.read(1) == []
    assert watch.shelf.next == {}
    assert watch.read() == [("a", 0, 0)]


@pytest.mark.parametrize(
    ("wanted", "span"), [("a", Span()), ("a", ALL), ("?", ALL)], ids=str
)
def test_topic_that_is_gone_is_an_error_where_it_was_meant(
    wanted: str, span: Span
) -> None:
    watch = Watch(Shelf(a=[1], b=[1]), wanted, span=span)
    watch.follower.begin()
    del watch.shelf.ends["a"]
    with pytest.raises(TopicLost, match="'a' was deleted while it was read"):
        watch.read()


def test_topic_that_a_pattern_means_may_go() -> None:
    watch = Watch(Shelf(a=[1], b=[1]), "?")
    watch.follower.begin()
    watch.shelf.ends = {"b": [2]}
    assert watch.read() == [("b", 0, 1)]
    assert watch.told[1:] == ["topic a was deleted"]
    watch.shelf.ends["a"] = [1]  # and may come again
    assert watch.read() == [("a", 0, 0)]


def test_topic_with_fewer_partitions_is_another_one() -> None:
    watch = Watch(Shelf(a=[1, 1]), "a")
    watch.follower.begin()
    watch.shelf.ends["a"] = [1]
    with pytest.raises(TopicLost, match="deleted"):
        watch.read()


def test_client_that_misses_a_topic_is_asked_what_went() -> None:
    watch = Watch(Shelf(a=[1], b=[1]), "?")
    watch.follower.begin()
    del watch.shelf.ends["a"]
    watch.shelf.failing_poll = [gone(Partition("a", 0))]
    watch.read()
    assert watch.told[1:] == ["topic a was deleted"]
    watch.shelf.failing_poll = [TopicLost("records are gone")]
    with pytest.raises(TopicLost, match="records are gone"):
        watch.read()


def test_a_topic_that_goes_takes_no_loss_of_another_with_it() -> None:
    watch = Watch(Shelf(a=[1], b=[1]), "?")
    watch.follower.begin()
    del watch.shelf.ends["a"]
    watch.shelf.failing_poll = [gone(Partition("a", 0), Partition("b", 0))]
    with pytest.raises(TopicLost, match="are gone"):
        watch.read()


class Marked(Shelf):
    """Topic `m` has nothing but markers of transactions, which are no records."""

    def poll(self, timeout_s: float) -> list[TopicRecord]:
        return [one for one in super().poll(timeout_s) if one.topic != "m"]


@pytest.mark.parametrize("firsts", [{"a": 5, "m": 2}, {"a": 5}], ids=str)
def test_a_loss_is_not_cured_by_a_partition_that_gave_nothing_yet(
    firsts: dict[str, int],
) -> None:
    watch = Watch(Marked(a=[3], m=[3]), "?", span=Span(from_beginning=True))
    watch.follower.begin()
    assert len(watch.read()) == 3
    # the records of `m` go, of which nothing was shown, and some of `a`
    watch.shelf.next[Partition("m", 0)] = 0
    watch.shelf.ends["a"] = [9]
    watch.shelf.firsts = firsts
    with pytest.raises(TopicLost, match="records of a are gone"):
        watch.read()


def test_what_was_read_to_the_end_may_be_deleted() -> None:
    watch = Watch(Shelf(a=[3], b=[6]), "?", span=ALL)
    watch.follower.begin()
    watch.shelf.next |= {Partition("a", 0): 3, Partition("b", 0): 2}
    watch.shelf.failing_poll = [gone(Partition("a", 0))]
    assert [one[0] for one in watch.read(9)] == ["b"] * 4


def test_kafka_that_is_away_is_said_once_and_waited_for() -> None:
    watch = Watch(Shelf(a=[1]), "a")
    watch.follower.begin()
    watch.shelf.away = [Transient("nobody answers")] * 3
    watch.shelf.failing_poll = [Transient("one partition hangs")] * 2
    assert watch.read(5) == []
    assert watch.told[1:] == [
        "one partition hangs; continuing",
        "nobody answers; waiting until it answers",
        "Kafka answers again",
    ]
    watch.shelf.ends["a"] = [2]
    watch.shelf.away = [Transient("nobody answers")]
    assert watch.read(5) == [("a", 0, 1)]
    assert watch.told[-2:] == watch.told[2:4]


def test_a_loss_is_looked_into_when_kafka_answers() -> None:
    watch = Watch(Shelf(a=[9]), "a", span=Span(from_beginning=True))
    watch.follower.begin()
    watch.shelf.firsts["a"] = 7
    watch.shelf.failing_bounds = [Transient("nobody answers")] * 2
    assert watch.read(9) == [("a", 0, 7), ("a", 0, 8)]
    assert watch.told[-1] == "Kafka answers again"


def test_who_wants_an_end_does_not_wait_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watch = Watch(Shelf(a=[9]), "a", span=ALL)
    watch.follower.begin()
    watch.shelf.ends["a"] = [2]  # and no more comes
    watch.shelf.away = [Transient("nobody answers")] * 99
    watch.read(9)
    monkeypatch.setattr(follow, "_PATIENCE_S", 0.0)
    with pytest.raises(Transient, match="nobody answers"):
        watch.read(9)


@pytest.mark.parametrize("error", [PermissionLacking("denied"), ConfigError("wrong")])
def test_what_lasts_is_not_waited_for(error: WalstreamError) -> None:
    watch = Watch(Shelf(a=[1]), "a")
    watch.follower.begin()
    watch.shelf.away = [error]
    with pytest.raises(type(error)):
        watch.read()


_HEAD = """
import ctypes, os, signal, sys, time
from walstream.cli.tail.follow import Ending
"""
# who asks late, on a busy machine, is told all the same
_PATIENT = "from walstream.cli.tail import follow\nfollow._GRACE_S = 600.0\n"
_WATCHING = "ended = Ending(1); print('ready', flush=True)\n"
_ENDS_S = 60.0  # a busy machine takes some of it
_ASKING = "while not ended(): time.sleep(0.01)\nprint('ended', flush=True)\n"


@contextmanager
def running(body: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", f"{_HEAD}{body}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()  # it has ended, or the test has failed


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_is_told_to_who_asks(number: signal.Signals) -> None:
    with running(_PATIENT + _WATCHING + _ASKING) as process:
        process.send_signal(number)
        out, error = process.communicate(timeout=_ENDS_S)
        assert (process.returncode, out, error) == (0, "ended\n", "")


def test_process_that_is_held_up_ends_all_the_same() -> None:
    with running(_WATCHING + "ctypes.CDLL(None).sleep(60)") as process:
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=_ENDS_S)
        assert (process.returncode, out, error) == (0, "", "")


@pytest.mark.parametrize("ignored", [False, True])
def test_ignored_signal_stays_ignored(ignored: bool) -> None:
    ignore = "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n" if ignored else ""
    taken = "print(signal.SIGHUP in signal.pthread_sigmask(signal.SIG_BLOCK, ()))"
    with running(ignore + _WATCHING + taken) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"{not ignored}\n"


def test_reader_that_left_is_noticed_without_writing() -> None:
    with running(_WATCHING + "while not ended(): pass\nos._exit(7)") as process:
        assert process.stdout is not None
        assert process.poll() is None
        process.stdout.close()
        assert process.wait(10) == 7


def test_file_is_never_left(tmp_path: Path) -> None:
    body = "print(Ending(os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT))())"
    command = [sys.executable, "-c", f"{_HEAD}{body}", str(tmp_path / "out")]
    assert subprocess.check_output(command, text=True) == "False\n"
