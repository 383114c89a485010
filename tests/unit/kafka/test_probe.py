"""Brokers that were away are asked until they answer."""

from concurrent.futures import Future

from walstream.errors import Transient
from walstream.kafka.probe import Asking


class Broker:
    """Answers as it is told, and hears that it is believed."""

    def __init__(self) -> None:
        self.unreachable = True
        self.asked: list[Future[None]] = []

    def ask(self) -> "Future[None]":
        self.asked.append(Future())
        return self.asked[-1]

    def answers(self) -> None:
        self.unreachable = False


def test_one_question_at_a_time_until_it_is_answered() -> None:
    broker, now = Broker(), [0.0]
    asking = Asking(broker, lambda: now[0])
    asking.look(broker)
    asking.look(broker)
    broker.asked[0].set_exception(Transient("away"))
    asking.look(broker)
    assert broker.unreachable
    asking.look(broker)
    assert len(broker.asked) == 1  # it is too soon
    now[0] = 2.0
    asking.look(broker)
    broker.asked[1].set_result(None)
    asking.look(broker)
    assert not broker.unreachable


def test_nobody_is_asked_while_all_is_well() -> None:
    broker = Broker()
    broker.unreachable = False
    Asking(broker, lambda: 9.0).look(broker)
    assert not broker.asked
