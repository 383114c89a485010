"""Ranges run by a driver that is played by the other end of its socket."""

import queue
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from tests.unit.driver.test_client import LONG_S, Nothing
from tests.waiting import wait_until
from walstream.driver import wire
from walstream.driver.order import Failed, Finished, Message
from walstream.errors import ConfigError, Transient, WalstreamError
from walstream.polling.runner import Line, Runner
from walstream.spark.chunk import ChunkDone, ChunkFailed
from walstream.spark.poll import Ahead, Range
from walstream.stop import Stop, Waker

PART = Range(1, "t", Ahead(0, 9))
DONE = ChunkDone(1, 9, 90)


class Played:
    """Says what it is told to, at each order; a connection is one Spark."""

    def __init__(self) -> None:
        self.listener = wire.listen()
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
                wire.receive(connection)
                for message in self.says.get():
                    wire.send(connection, message)
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
def played() -> Iterator[Played]:
    made = Played()
    yield made
    made.close()


@pytest.fixture
def stop() -> Stop:
    return Stop(Waker(), 0.1)


@pytest.fixture
def line(played: Played) -> Iterator[Line]:
    line = Line(wire.address(played.listener))
    yield line
    line.close()


@contextmanager
def running(line: Line, stop: Stop) -> Iterator[Runner]:
    run = Runner(line, lambda _: Nothing(), stop, threading.Event())
    try:
        yield run
    finally:
        run.leave()


def test_outcomes_are_told_as_they_come(played: Played, line: Line, stop: Stop) -> None:
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
    line: Line,
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
    played: Played, line: Line, stop: Stop
) -> None:
    for _ in range(2):
        with running(line, stop) as run:
            played.says.put([Finished()])
            assert run([PART], lambda _: None)
    assert len(played.connections) == 1


def test_a_spark_that_ended_meanwhile_is_not_asked(
    played: Played, line: Line, stop: Stop
) -> None:
    for connections in (1, 2):
        with running(line, stop) as run:
            played.says.put([Finished()])
            assert run([PART], lambda _: None)
            assert len(played.connections) == connections
        played.connections[-1].shutdown(socket.SHUT_RDWR)


def test_what_still_runs_is_ended_and_not_heard_of_again(
    played: Played, line: Line, stop: Stop
) -> None:
    def cannot_be_stored(_done: ChunkDone) -> None:
        played.says.put([])  # so that it hears that it is left
        raise Transient("no room")

    played.says.put([DONE])
    with running(line, stop) as run, pytest.raises(Transient, match="no room"):
        run([PART], cannot_be_stored)
    wait_until(lambda: played.connections[0].fileno() < 0, LONG_S, "it is closed")


def test_a_stop_lets_nothing_begin_and_its_deadline_cuts_short(
    played: Played, line: Line, stop: Stop
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
