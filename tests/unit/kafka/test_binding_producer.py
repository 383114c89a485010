"""confluent-kafka's producer as `OrderedProducer` takes it."""

from confluent_kafka import KafkaError, Message

from tests.support.deadline import wait_until
from tests.support.servers.mock_kafka import Mocked
from walstream.kafka.binding_producer import BindingProducer
from walstream.pipeline.ledger import Counted


class Heard:
    def __init__(self) -> None:
        self.of: list[tuple[Counted, object, int | None]] = []

    def hear(
        self, transaction: Counted, error: KafkaError | None, message: Message
    ) -> None:
        self.of.append((transaction, error, message.offset()))

    def count(self, transaction: Counted, records: int) -> None:
        raise NotImplementedError

    def miss(
        self, error: KafkaError | None, topic: str | None, partition: int | None
    ) -> None:
        raise NotImplementedError


def test_each_delivery_is_heard_of_in_the_poll() -> None:
    kafka, heard, counted = Mocked(), Heard(), Counted()
    made = BindingProducer({"bootstrap.servers": kafka.bootstrap}, lambda _: None)
    callback = made.callback(counted, heard)
    made.produce("t", b"v", b"k", 0, callback, None, 1, None)
    assert len(made) == 1

    def is_heard() -> bool:
        made.poll(0.05)
        return bool(heard.of)

    wait_until(is_heard, 30, "it is delivered")
    assert heard.of == [(counted, None, 0)]
    assert made.report(heard) == 0
    made.close()
