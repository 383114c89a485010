"""A Kafka inside this process, of librdkafka's own: no server, no other process."""

from confluent_kafka import Producer

PARTITIONS = 4  # of each topic, which is made when it is written to


class Mocked:
    def __init__(self, *, rtt_ms: int = 0) -> None:
        """Answer each request after `rtt_ms`."""
        # lives as long as this client does
        self._producer = Producer(
            {
                "bootstrap.servers": "-",
                "test.mock.num.brokers": 1,
                "test.mock.broker.rtt": rtt_ms,
            }
        )
        (broker,) = self._producer.list_topics(timeout=10).brokers.values()
        self.bootstrap = f"{broker.host}:{broker.port}"

    def write(self, topic: str, each: int) -> None:
        """Write so many records to each partition."""
        for number in range(each * PARTITIONS):
            self._producer.produce(topic, b"x", partition=number % PARTITIONS)
        assert not self._producer.flush(10)
