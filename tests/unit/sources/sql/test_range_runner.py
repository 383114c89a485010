"""Ranges run by a driver that is played by the other end of its socket."""

import errno
import os
import queue
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.deadline import wait_until
from tests.unit.spark.driver.test_client import LONG_S, Nothing
from walstream.config import Config
from walstream.errors import ConfigError, Transient, WalstreamError
from walstream.kafka.bulk_producer_pool import BulkProducerPool
from walstream.pipeline.shutdown import Stop, Waker
from walstream.sources.sql.range_runner import (
    Caution,
    Ends,
    Here,
    IdleConnections,
    Runner,
)
from walstream.sources.sql.task import Ahead, Range
from walstream.spark.driver import transport
from walstream.spark.driver.messages import Failed, Finished, Message
from walstream.spark.outcome import ChunkDone, ChunkFailed

PART = Range(1, "t", Ahead(0, 9))
DONE = ChunkDone(1, 9, 90)


class Played:
    """Says what it is told to, at each order; a connection is one Spark."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.listener = transport.listen(folder)
        self.says: queue.SimpleQueue[Sequence[Message]] = queue.SimpleQueue()
        self.connections: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections.append(connection)
            threading.Thread(
                target=self._serve, args=(connection,), daemon=True
            ).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            while True:
                transport.receive(connection)
                for message in self.says.get():
                    transport.send(connection, message)
        except (OSError, EOFError):
            connection.close()

    def close(self) -> None:
        # a close alone would leave the thread to accept on the descriptor's next owner
        self.listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self.listener.close()
        for connection in self.connections:
            connection.close()


@pytest.fixture
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    made = Played(tmp_path_factory.mktemp("state"))
    yield made
    made.close()


@pytest.fixture
def stop() -> Stop:
    return Stop(Waker(), 0.1)


@pytest.fixture
def line(played: Played) -> Iterator[IdleConnections]:
    line = IdleConnections(str(played.folder))
    yield line
    line.close()


@contextmanager
def running(line: IdleConnections, stop: Stop) -> Iterator[Runner]:
    run = Runner(line, lambda _: Nothing(), Ends(stop))  # type: ignore[arg-type,return-value]
    try:
        yield run
    finally:
        run.leave()


def test_outcomes_are_told_as_they_come(
    played: Played, line: IdleConnections, stop: Stop
) -> None:
    told: list[ChunkDone] = []
    with running(line, stop) as run:
        for _ in range(2):
            played.says.put([DONE, Finished()])
            assert run([PART], told.append)
    assert told == [DONE, DONE]
    assert len(played.connections) == 1


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ChunkFailed("too often"), Transient),
        (ConfigError("no such table"), ConfigError),
    ],
)
def test_a_failure_is_raised_and_what_spark_gave_up_is_tried_again(
    error: WalstreamError,
    kind: type[WalstreamError],
    played: Played,
    line: IdleConnections,
    stop: Stop,
) -> None:
    played.says.put([Failed(error)])
    with (
        running(line, stop) as run,
        pytest.raises(kind, match=str(error.args[0])) as raised,
    ):
        run([PART], lambda _: None)
    assert type(raised.value) is kind


def test_spark_stays_for_the_next_session(
    played: Played, line: IdleConnections, stop: Stop
) -> None:
    for _ in range(2):
        with running(line, stop) as run:
            played.says.put([Finished()])
            assert run([PART], lambda _: None)
    assert len(played.connections) == 1


def test_a_spark_that_ended_meanwhile_is_not_asked(
    played: Played, line: IdleConnections, stop: Stop
) -> None:
    for connections in (1, 2):
        with running(line, stop) as run:
            played.says.put([Finished()])
            assert run([PART], lambda _: None)
            assert len(played.connections) == connections
        played.connections[-1].shutdown(socket.SHUT_RDWR)


def test_what_still_runs_is_ended_and_not_heard_of_again(
    played: Played, line: IdleConnections, stop: Stop
) -> None:
    def cannot_be_stored(_done: ChunkDone) -> None:
        played.says.put([])  # so that it hears that it is left
        raise Transient("no room")

    played.says.put([DONE])
    with running(line, stop) as run, pytest.raises(Transient, match="no room"):
        run([PART], cannot_be_stored)
    wait_until(lambda: played.connections[0].fileno() < 0, LONG_S, "it is closed")


def test_a_stop_lets_nothing_begin_and_its_deadline_cuts_short(
    played: Played, line: IdleConnections, stop: Stop
) -> None:
    told: list[ChunkDone] = []

    def and_stop(done: ChunkDone) -> None:
        told.append(done)
        stop.request()
        played.says.put([])  # so that it hears that it is left

    played.says.put([DONE])
    with running(line, stop) as run:
        assert not run([PART], and_stop)
        assert told == [DONE]
        assert run.cut_short
    with running(line, stop) as other:
        assert not other([PART], told.append)
        assert not other.cut_short


class Task:
    """Runs a range in this process; it may be told to end it."""

    def __init__(self, stop: Stop | None = None) -> None:
        self._stop = stop
        self.ran = 0

    def task(self, _config: object, _leash: object) -> "Task":
        return self

    def here(self, _part: Range, check: Callable[[], None], _senders: object) -> object:
        self.ran += 1
        if self._stop is not None:
            self._stop.request()
            wait_until(lambda: self._stop and self._stop.expired, LONG_S, "it is over")
        check()
        return DONE


FEW = Range(2, "t", Ahead(0, 9), 9)


def here(line: IdleConnections, stop: Stop, task: Task, folder: Path) -> Runner:
    config: Config = None  # type: ignore[assignment]  # nobody looks at it
    with_it = Here(config, BulkProducerPool(), Caution(folder, "t"))
    return Runner(line, lambda _: task, Ends(stop), with_it)  # type: ignore[arg-type,return-value]


def test_a_few_rows_are_read_here_and_many_by_spark(
    played: Played, line: IdleConnections, stop: Stop, tmp_path: Path
) -> None:
    told: list[ChunkDone] = []
    task = Task()
    run = here(line, stop, task, tmp_path)
    assert run([FEW], told.append)
    assert (task.ran, told, played.connections) == (1, [DONE], [])
    assert not list(tmp_path.iterdir())


def test_a_note_that_cannot_be_written_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    caution = Caution(tmp_path, "t")

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "touch", refuse)
        with pytest.raises(Transient, match="Input/output error"):
            caution.__enter__()
        patched.setattr(Path, "unlink", refuse)
        caution.__exit__()
    with caution:
        assert list(tmp_path.iterdir())
    assert not list(tmp_path.iterdir())


def test_rows_that_ended_the_process_that_read_them_are_left_to_spark(
    played: Played, line: IdleConnections, stop: Stop, tmp_path: Path
) -> None:
    Caution(tmp_path, "t").__enter__()  # and the process is gone
    assert not Caution(tmp_path, "u").left
    task = Task()
    run = Runner(
        line,
        lambda _: Nothing(),  # type: ignore[arg-type,return-value]
        Ends(stop),
        Here(None, BulkProducerPool(), Caution(tmp_path, "t")),  # type: ignore[arg-type]
    )
    played.says.put([DONE, Finished()])
    assert run([FEW], lambda _: None)
    run.leave()
    assert len(played.connections) == 1
    assert here(line, stop, task, tmp_path)([FEW], lambda _: None)  # Spark got through
    assert task.ran == 1


def test_a_stops_deadline_cuts_short_what_is_read_here(
    line: IdleConnections, stop: Stop, tmp_path: Path
) -> None:
    told: list[ChunkDone] = []
    run = here(line, stop, Task(stop), tmp_path)
    assert not run([FEW], told.append)
    assert run.cut_short
    assert not told


def test_a_session_that_is_over_begins_nothing_and_cuts_nothing(
    played: Played, line: IdleConnections, stop: Stop
) -> None:
    ends = Ends(stop)
    told: list[ChunkDone] = []
    run = Runner(line, lambda _: Nothing(), ends)  # type: ignore[arg-type,return-value]

    def and_end(done: ChunkDone) -> None:
        told.append(done)
        ends.over.set()

    played.says.put([DONE, DONE, Finished()])
    assert run([PART], and_end)
    assert told == [DONE, DONE]
    assert not run([PART], and_end)
    assert not run.cut_short
    run.leave()
