"""Where partitions end is told again once brokers are back.

librdkafka's admin client goes on by the leaders that it knew, or did not, while they
were away.
"""

from collections.abc import Callable
from contextlib import suppress

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exports
    AdminClient,
    NewTopic,
)

from consumer.group.assigned_partition import Place
from consumer.state.topic_guard import TopicGuard
from consumer.whole.partition_reader import PartitionReader
from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import OwnKafka
from walstream.errors import Transient, WalstreamError
from walstream.kafka.topic_ends import ends

_COUNT = 32
_PLACES = [Place("t", number) for number in range(_COUNT)]


def test_ends_are_told_again_after_a_broker_was_killed(own_kafka: OwnKafka) -> None:
    broker = own_kafka()
    servers: dict[str, object] = {"bootstrap.servers": broker.bootstrap}
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 2})
    for made in admin.create_topics([NewTopic("t", _COUNT, 1)]).values():
        made.result(30)
    guard = TopicGuard(servers, "g")
    reader = PartitionReader({**servers, "group.id": "g"})

    def guarded() -> bool:
        with suppress(Transient):
            return [guard.bounds(place) for place in _PLACES] == [(0, 0)] * _COUNT
        return False

    def of_topics() -> bool:
        with suppress(WalstreamError):
            return ends(admin, {"t": _COUNT}) == {"t": [0] * _COUNT}
        return False

    def read() -> bool:
        return answer(reader) == dict.fromkeys(_PLACES, 0)

    ways: list[Callable[[], bool]] = [guarded, of_topics, read]
    try:
        for ask in ways:
            wait_until(ask, 30, f"{ask.__name__}: each end is told")
        broker.kill()
        for ask in ways:
            wait_until(lambda: not ask(), 30, "no broker answers")  # noqa: B023
        broker.start()
        for ask in ways:
            wait_until(ask, 30, f"{ask.__name__}: each end is told again")
    finally:
        reader.close()


def answer(reader: PartitionReader) -> dict[Place, int]:
    """Ask once, and wait for what is answered."""
    reader.ask_ends(_PLACES)
    found: list[dict[Place, int]] = []

    def look() -> bool:
        reader.poll(0.01)
        if (told := reader.ends()) is not None:
            found.append(told)
        return bool(found)

    wait_until(look, 30, "an answer")
    return found[0]
