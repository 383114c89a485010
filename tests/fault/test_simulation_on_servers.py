"""The simulation is as the real servers are: the same acts give the same history."""

import os
from collections.abc import Callable, Iterator
from typing import Final

import pytest

from tests.simulation.real import seeds, servers
from tests.simulation.real.comparison import Differs
from tests.simulation.real.lies import KAFKA, POSTGRES, TRANSACTIONS, told
from tests.simulation.real.servers import Broker
from tests.support.fixtures.server_origin import needs_own_servers
from walstream.testing.servers import LocalPostgres

_SEED: Final = int(os.environ.get("WALSTREAM_TEST_SEED") or 0)
_SHORT: Final = range(_SEED, _SEED + 6)
_LONG: Final = range(_SEED + 100, _SEED + 140)
_MOST: Final = 40  # seeds until a lie has to be noticed


@pytest.fixture(scope="module", params=[15, 18], ids=["pg15", "pg18"])
def server(request: pytest.FixtureRequest) -> Iterator[LocalPostgres]:
    needs_own_servers()
    with servers.postgres(request.param) as started:
        yield started


def test_a_walsender_tells_what_the_simulated_one_tells(server: LocalPostgres) -> None:
    for seed in _SHORT:
        seeds.acts(server, seed)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    needs_own_servers()
    with servers.broker() as started:
        started.deny()
        yield started


@pytest.mark.fault_long
@pytest.mark.takes(120)
def test_postgres_is_as_the_simulated_one_through_crashes(
    server: LocalPostgres,
) -> None:
    for seed in _LONG:
        seeds.acts(server, seed)


@pytest.mark.fault_long
@pytest.mark.takes(120)
def test_kafka_is_as_the_simulated_one(broker: Broker) -> None:
    for seed in _LONG[:10]:
        seeds.producing(broker, seed)


@pytest.mark.fault_long
@pytest.mark.takes(120)
def test_transactions_are_as_the_simulated_ones(broker: Broker) -> None:
    for seed in _LONG[:10]:
        seeds.transactions(broker, seed)


@pytest.mark.fault_long
@pytest.mark.takes(240)
def test_the_whole_program_has_the_history_of_the_simulation(
    server: LocalPostgres, broker: Broker
) -> None:
    for seed in _LONG[:10]:
        seeds.course(server, broker, seed)


@pytest.fixture(scope="module")
def newest() -> Iterator[LocalPostgres]:
    needs_own_servers()
    with servers.postgres(18) as started:
        yield started


@pytest.mark.fault_long
@pytest.mark.parametrize("lie", POSTGRES)
def test_a_wrong_simulation_of_postgres_is_noticed(
    newest: LocalPostgres, lie: str
) -> None:
    with told(POSTGRES[lie]):
        assert _noticed(lambda seed: seeds.acts(newest, seed))


@pytest.mark.fault_long
@pytest.mark.parametrize("lie", KAFKA)
def test_a_wrong_simulation_of_kafka_is_noticed(broker: Broker, lie: str) -> None:
    with told(KAFKA[lie]):
        assert _noticed(lambda seed: seeds.producing(broker, seed))


@pytest.mark.fault_long
@pytest.mark.parametrize("lie", TRANSACTIONS)
def test_a_wrong_simulation_of_transactions_is_noticed(
    broker: Broker, lie: str
) -> None:
    with told(TRANSACTIONS[lie]):
        assert _noticed(lambda seed: seeds.transactions(broker, seed))


def _noticed(compare: Callable[[int], object]) -> bool:
    """Return whether a seed shows a difference."""
    for seed in range(_MOST):
        try:
            compare(seed)
        except Differs:
            return True
    return False
