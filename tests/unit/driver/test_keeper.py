"""The keeper starts a driver for whoever connects; one that cannot start says why."""

import selectors
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.unit.driver.test_client import Nothing
from walstream.config import Config
from walstream.driver.client import Driver
from walstream.driver.keeper import Keeper
from walstream.driver.order import Failed
from walstream.errors import ConfigError

LONG_S = 60.0


@pytest.fixture
def selector() -> Iterator[selectors.BaseSelector]:
    with selectors.DefaultSelector() as selector:
        yield selector


def turn(keeper: Keeper, selector: selectors.BaseSelector) -> None:
    keeper.tick()
    for key, _ in selector.select(0.05):
        key.data()


def test_a_driver_starts_when_it_is_wanted_and_its_refusal_is_heard(
    selector: selectors.BaseSelector,
) -> None:
    config = Config.model_validate({"spark": {"master": "nonsense"}})
    keeper = Keeper(config, selector)
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
