"""What cannot be stored is said, once, and stored again."""

from typing import cast

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from walstream.errors import PermissionLacking, WalstreamError
from walstream.kafka.offset_commit import OffsetCommit
from walstream.kafka.offsets import Partition

A, B = Partition("t", 0), Partition("t", 1)
WHERE = [TopicPartition(*A, 5), TopicPartition(*B, 7)]
REFUSED = KafkaError(KafkaError.INVALID_COMMIT_OFFSET_SIZE)


def storing() -> tuple[OffsetCommit, list[WalstreamError]]:
    failed: list[WalstreamError] = []
    return OffsetCommit("g", failed.append), failed


def test_a_cause_is_said_once_and_what_failed_is_given_back() -> None:
    made, failed = storing()
    with structlog.testing.capture_logs() as said:
        for _ in range(3):
            made.heard(REFUSED, WHERE)
    assert len(said) == 1
    assert "offsets of group 'g' are not stored" in said[0]["event"]
    assert said[0]["event"].startswith(made.why)
    assert made.take_unstored() == {A, B}
    assert made.take_unstored() == set()
    assert made.take_begun() == set()
    assert not failed


def test_it_ends_with_what_is_stored() -> None:
    made, _ = storing()
    made.heard(REFUSED, WHERE)
    made.heard(None, WHERE)
    assert not made.why
    assert made.take_begun() == {"t"}
    with structlog.testing.capture_logs() as said:
        made.heard(REFUSED, WHERE)
    assert said


def test_a_move_of_the_group_is_no_trouble() -> None:
    made, failed = storing()
    with structlog.testing.capture_logs() as said:
        made.heard(KafkaError(KafkaError.REBALANCE_IN_PROGRESS), WHERE)
    assert not said
    assert not made.why
    assert made.take_unstored() == {A, B}
    assert not failed


def test_a_right_that_lacks_stops() -> None:
    made, failed = storing()
    made.heard(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED), WHERE)
    assert isinstance(failed[0], PermissionLacking)


def test_partitions_of_somebody_else_are_not_given_back() -> None:
    made, _ = storing()
    made.heard(REFUSED, WHERE)
    made.forget([A])
    assert made.take_unstored() == {B}


class Broker:
    """Takes offsets without notes alone."""

    def __init__(self) -> None:
        self.taken: list[TopicPartition] = []

    def commit(
        self, *, offsets: list[TopicPartition], asynchronous: bool
    ) -> list[TopicPartition] | None:
        refused = any(one.metadata for one in offsets)
        if refused:
            made_error = KafkaError(KafkaError.OFFSET_METADATA_TOO_LARGE)
            if asynchronous:
                self.made.heard(made_error, offsets)
                return None
            raise KafkaException(made_error)
        self.taken += offsets
        return None

    made: OffsetCommit


def test_a_note_that_is_too_large_is_left_out() -> None:
    for wait in (True, False):
        made, _ = storing()
        broker = Broker()
        broker.made = made
        made.store(cast("Consumer", broker), {A: (5, "note")}, wait=wait)
        if not wait:
            assert made.take_unstored() == {A}
            made.store(cast("Consumer", broker), {A: (5, "note")}, wait=wait)
        assert [(one.offset, one.metadata) for one in broker.taken] == [(5, "")]
