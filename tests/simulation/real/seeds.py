"""What one seed compares; each raises Differs where the simulation is another.

Whatever else is raised says the seed, too: what never comes is a difference.
"""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

from tests.simulation.real import acts as of_clients
from tests.simulation.real import producing as of_producers
from tests.simulation.real import transactions as of_transactions
from tests.simulation.real.brokers import RealBrokers, SimulatedBrokers
from tests.simulation.real.comparison import Comparison
from tests.simulation.real.course import Course
from tests.simulation.real.producing import Producing, Side
from tests.simulation.real.servers import Broker, database, programmed
from tests.simulation.real.simulated import Simulated
from tests.simulation.real.transactions import Transactions
from tests.simulation.world import Violation
from walstream.testing.servers import LocalPostgres


@contextmanager
def _of(seed: int) -> Iterator[None]:
    Violation.first = ""  # of another schedule, which was to violate something
    try:
        yield
    except BaseException as error:
        error.add_note(f"again: make simulate REAL=1 SEED={seed}")
        raise


def acts(server: LocalPostgres, seed: int) -> None:
    """Compare a PostgreSQL."""
    with _of(seed), database(server) as real:
        comparison = Comparison(Simulated(seed), real, f"s{secrets.token_hex(4)}")
        comparison.run(of_clients.drawn(seed))


def producing(broker: Broker, seed: int) -> None:
    """Compare a Kafka."""
    with _of(seed):
        real = RealBrokers(broker.link, broker.bootstrap)
        sides = Side(SimulatedBrokers(seed)), Side(real)
        name = f"{seed}-{secrets.token_hex(3)}"
        Producing(*sides, name).run(of_producers.drawn(seed))


def transactions(broker: Broker, seed: int) -> None:
    """Compare a Kafka's transactions."""
    with _of(seed):
        name = f"{seed}-{secrets.token_hex(3)}"
        real = RealBrokers(broker.link, broker.bootstrap)
        model = of_transactions.Side(SimulatedBrokers(seed), name)
        truth = of_transactions.Side(real, name)
        Transactions(model, truth, name).run(of_transactions.drawn(seed))


def course(server: LocalPostgres, broker: Broker, seed: int) -> None:
    """Compare the whole program's histories."""
    with _of(seed), programmed(server, broker, Course.of(seed)) as program:
        program.run()
