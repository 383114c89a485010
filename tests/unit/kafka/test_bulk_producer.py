"""What is given up raises nothing; how records are sent is seen by a task's tests."""

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from walstream.errors import Transient
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


class Said:
    """The message of a report that tells no offset."""

    def topic(self) -> str:
        return "t"

    def offset(self) -> None:
        return None


class SilentProducer(Producer):
    """One whose records are reported without an offset."""

    def produce(self, *record: Any, **_: Any) -> None:
        record[4](None, Said())


class SilentBulkProducer(BulkProducer):
    def _open(self) -> Producer:
        return SilentProducer({"bootstrap.servers": "127.0.0.1:1"})


@pytest.mark.parametrize("aside", [False, True])
def test_a_record_of_which_no_offset_is_told_counts_as_not_delivered(
    aside: bool,
) -> None:
    sender = SilentBulkProducer(Outgoing("rows", {}), lambda: None)
    if aside:
        sender.send_aside("t", b"v", b"k", 0)
    else:
        sender.send("t", b"v", b"k", 0)
    with pytest.raises(Transient, match="did not say where it is"):
        sender.serve(0)
