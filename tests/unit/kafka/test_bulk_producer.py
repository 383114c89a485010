"""What is given up raises nothing; how records are sent is seen by a task's tests."""

from confluent_kafka import KafkaError, KafkaException, Producer

from walstream.kafka.bulk_producer import BulkProducer, Outgoing


class EndedProducer(Producer):
    """One that gave up records in flight under `enable.gapless.guarantee`."""

    def poll(self, timeout: float = -1) -> int:  # noqa: ARG002 - as its base
        raise KafkaException(KafkaError(KafkaError._GAPLESS_GUARANTEE, fatal=True))  # noqa: SLF001 - its public name


class EndedBulkProducer(BulkProducer):
    def _open(self) -> Producer:
        return EndedProducer({"bootstrap.servers": "127.0.0.1:1"})


def test_a_producer_that_gives_up_does_not_hide_why_it_had_to() -> None:
    sender = EndedBulkProducer(Outgoing("rows", {}), lambda: None)
    sender.abandon()
