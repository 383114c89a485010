"""What stops a member that reads, and what passes by itself."""

import pytest
from confluent_kafka import KafkaError

from walstream.errors import HistoryError, PermissionLacking, Transient
from walstream.kafka.group_errors import reading_trouble
from walstream.kafka.offsets import Partition

PLACE = Partition("up", 2)


@pytest.mark.parametrize(
    "code",
    [
        KafkaError._TRANSPORT,  # noqa: SLF001 - librdkafka's local codes are spelt so
        KafkaError._TIMED_OUT,  # noqa: SLF001 - likewise
        KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001 - likewise
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.REBALANCE_IN_PROGRESS,
    ],
)
def test_what_passes_stops_nobody(code: int) -> None:
    assert reading_trouble(KafkaError(code), "g", PLACE, 7) is None


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (KafkaError._BAD_COMPRESSION, Transient),  # noqa: SLF001 - likewise
        (KafkaError._BAD_MSG, Transient),  # noqa: SLF001 - likewise
        (KafkaError.INVALID_MSG, Transient),
        (KafkaError.UNKNOWN, Transient),
        (KafkaError.MSG_SIZE_TOO_LARGE, HistoryError),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, PermissionLacking),
    ],
)
def test_what_cannot_be_read_is_named_with_its_place(code: int, kind: type) -> None:
    found = reading_trouble(KafkaError(code), "g", PLACE, 7)
    assert type(found) is kind
    assert "topic 'up' partition 2 at offset 7" in str(found)


def test_trouble_of_the_group_names_the_group() -> None:
    error = KafkaError(KafkaError.GROUP_MAX_SIZE_REACHED)
    assert "group 'g'" in str(reading_trouble(error, "g", None, -1001))
