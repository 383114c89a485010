"""A Kafka inside this process, of librdkafka's own: no server, no other process."""

from functools import cache
from typing import Any, Final

from confluent_kafka import Producer

PARTITIONS = 4  # of each topic, which is made when it is written to
# its end can wait for a lock for ever, in librdkafka: it comes with the process's
_KEPT: Final[list[Producer]] = []


class Mocked:
    def __init__(self, *, rtt_ms: int = 0) -> None:
        """Answer each request after `rtt_ms`, until this process ends."""
        self._producer = Producer(
            {
                "bootstrap.servers": "-",
                "test.mock.num.brokers": 1,
                "test.mock.broker.rtt": rtt_ms,
            }
        )
        _KEPT.append(self._producer)
        (broker,) = self._producer.list_topics(timeout=10).brokers.values()
        self.bootstrap = f"{broker.host}:{broker.port}"

    def write(self, topic: str, each: int) -> None:
        """Write so many records to each partition."""
        for number in range(each * PARTITIONS):
            self._producer.produce(topic, b"x", partition=number % PARTITIONS)
        assert not self._producer.flush(10)


@cache
def shared_kafka() -> dict[str, Any]:
    """Give the properties of one for tests to which others' topics are nothing."""
    return {"bootstrap.servers": Mocked().bootstrap}
