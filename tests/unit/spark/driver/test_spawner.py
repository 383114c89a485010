"""The keeper starts a driver for whoever connects; one that cannot start says why."""

import contextlib
import os
import selectors
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tests.unit.spark.driver.test_client import Nothing
from walstream.config import Config
from walstream.errors import ConfigError, Transient
from walstream.spark.driver.client import Driver
from walstream.spark.driver.messages import Failed
from walstream.spark.driver.spawner import DriverSpawner

LONG_S = 60.0
NOBODY = 65534


@pytest.fixture
def selector() -> Iterator[selectors.BaseSelector]:
    with selectors.DefaultSelector() as selector:
        yield selector


def turn(keeper: DriverSpawner, selector: selectors.BaseSelector) -> None:
    keeper.tick()
    for key, _ in selector.select(0.05):
        key.data()


def config(folder: Path) -> Config:
    return Config.model_validate(
        {"state": str(folder), "spark": {"master": "nonsense"}}
    )


def test_a_driver_starts_when_it_is_wanted_and_its_refusal_is_heard(
    selector: selectors.BaseSelector, tmp_path: Path
) -> None:
    keeper = DriverSpawner(config(tmp_path), selector)
    keeper.open()
    try:
        turn(keeper, selector)
        assert keeper.pid is None
        for _ in range(2):  # the first one's end brings the second
            with closing(Driver(keeper.address)) as driver:
                driver.order(Nothing())
                heard, deadline = None, time.monotonic() + LONG_S
                while heard is None and time.monotonic() < deadline:
                    turn(keeper, selector)
                    heard = driver.hear(0)
            assert isinstance(heard, Failed)
            assert isinstance(heard.error, ConfigError)
            assert "start: Master must either be" in str(heard.error)
    finally:
        keeper.close()
    assert keeper.pid is None


def name_in_kernel(selector: selectors.BaseSelector) -> str:
    """Give the name of what is listened on, as every user may see it."""
    (key,) = selector.get_map().values()
    inode = str(os.fstat(key.fd).st_ino)
    lines = Path("/proc/net/unix").read_text("utf-8").splitlines()
    (line,) = [one.split() for one in lines if one.split()[6] == inode]
    return line[7]


def connect_as_nobody(name: str) -> None:
    os.seteuid(NOBODY)
    try:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as caller:
            caller.connect(name)
    finally:
        os.seteuid(0)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can")
def test_another_user_starts_nothing(selector: selectors.BaseSelector) -> None:
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o755)
        keeper = DriverSpawner(config(Path(made)), selector)
        keeper.open()
        turn(keeper, selector)
        try:
            names = [name_in_kernel(selector).replace("@", "\0")]
            names += map(str, Path(made).iterdir())
            for name in names:
                connect_as_nobody(name)
            turn(keeper, selector)
            assert keeper.pid is None
        finally:
            keeper.close()
        assert not list(Path(made).iterdir())


def test_where_no_socket_can_be_made_it_is_tried_again(
    selector: selectors.BaseSelector, tmp_path: Path
) -> None:
    folder = tmp_path / "state"
    keeper = DriverSpawner(config(folder), selector)
    with capture_logs() as log:
        keeper.open()
    try:
        (said,) = log
        assert said["error"] == f"{folder}/spark.sock: No such file or directory"
        folder.mkdir()
        keeper.tick()
        with pytest.raises(Transient):
            Driver(keeper.address)  # not at each turn
        keeper.open()
        Driver(keeper.address).close()
    finally:
        keeper.close()
