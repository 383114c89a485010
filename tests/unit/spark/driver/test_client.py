"""A worker's connection to the driver, played by the other end of its socket."""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from walstream.config import Config
from walstream.errors import Transient
from walstream.spark.driver import transport
from walstream.spark.driver.client import Driver
from walstream.spark.driver.messages import Failed, Finished, Message
from walstream.spark.leash import Leash
from walstream.spark.outcome import ChunkDone

LONG_S = 30.0


@dataclass(frozen=True)
class Nothing:
    """An order, as far as the wire sees it."""

    source: str = "app"
    lock: str = ""
    chunks: tuple[int, ...] = ()
    at_once: int | None = None
    in_process: bool = False

    def task(self, _config: Config, _leash: Leash | None) -> type[ChunkDone]:
        return ChunkDone


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[socket.socket]:
    with transport.listen(tmp_path) as listener:
        yield listener


def test_outcomes_are_heard_in_their_order(
    listener: socket.socket, tmp_path: Path
) -> None:
    with closing(Driver(str(tmp_path))) as driver:
        theirs, _ = listener.accept()
        with theirs:
            driver.order(Nothing())
            assert transport.receive(theirs) == Nothing()
            said: list[Message] = [ChunkDone(1, 2, 3), ChunkDone(2, 0, 0), Finished()]
            for message in said:
                transport.send(theirs, message)
            assert [driver.hear(LONG_S) for _ in said] == said
            assert driver.hear(0) is None


def test_a_driver_that_ends_is_heard_as_a_failure_that_passes(
    listener: socket.socket, tmp_path: Path
) -> None:
    with closing(Driver(str(tmp_path))) as driver:
        theirs, _ = listener.accept()
        driver.order(Nothing())
        theirs.close()
        heard = driver.hear(LONG_S)
        assert isinstance(heard, Failed)
        assert isinstance(heard.error, Transient)


def test_leaving_waits_until_what_runs_was_ended(
    listener: socket.socket, tmp_path: Path
) -> None:
    driver = Driver(str(tmp_path))
    theirs, _ = listener.accept()
    driver.order(Nothing())
    transport.receive(theirs)
    leaving = threading.Thread(target=driver.close)
    leaving.start()
    assert theirs.recv(1) == b""  # it wants no more
    assert leaving.is_alive()
    theirs.close()
    leaving.join(LONG_S)
    assert not leaving.is_alive()


def test_where_nobody_listens_the_error_passes(tmp_path: Path) -> None:
    with pytest.raises(Transient):
        Driver(str(tmp_path))
    transport.listen(tmp_path).close()
    with pytest.raises(Transient):
        Driver(str(tmp_path))
