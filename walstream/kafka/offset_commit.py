"""A group's offsets on their way to the brokers, and what became of them."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from walstream.errors import WalstreamError
from walstream.kafka.group import DENIED, reading_failure
from walstream.kafka.group_errors import PASSING
from walstream.kafka.offsets import Partition

_TOO_LONG: Final = KafkaError.OFFSET_METADATA_TOO_LARGE
_log = structlog.get_logger()


class OffsetCommit:
    """Offsets that one member stores; callbacks of the client report the outcome."""

    def __init__(self, group: str, fail: Callable[[WalstreamError], None]) -> None:
        """`fail` hears what no other try would cure."""
        self._group = group
        self._fail = fail
        self._unstored: set[Partition] = set()
        self._begun: set[str] = set()
        self._bare = False  # the broker takes no note of ours
        self._said: set[int] = set()
        self.why = ""  # offsets are not stored

    def store(
        self,
        consumer: Consumer,
        offsets: Mapping[Partition, tuple[int, str]],
        *,
        wait: bool,
    ) -> None:
        """Store offsets and what is kept beside them.

        Raises WalstreamError when they were to be waited for and were not taken.
        """
        if not offsets:
            return
        where = self._spelt(offsets)
        try:
            if not wait:
                consumer.commit(offsets=where, asynchronous=True)
                return
            error = _error_of(consumer, where)
            if error is not None and error.code() == _TOO_LONG:
                self._refused(error)
                error = _error_of(consumer, self._spelt(offsets))
        except KafkaException as raised:
            error = raised.args[0]
        if error is not None:
            raise reading_failure(error, "storing offsets")
        self._begun |= {place.topic for place in offsets}

    def _spelt(
        self, offsets: Mapping[Partition, tuple[int, str]]
    ) -> list[TopicPartition]:
        return [
            TopicPartition(*place, offset, "" if self._bare else note)
            for place, (offset, note) in offsets.items()
        ]

    def heard(self, error: KafkaError | None, where: Iterable[TopicPartition]) -> None:
        """Note what became of a request."""
        refused: KafkaError | None = None
        for one in where:
            found = one.error or error
            if found is None:
                self._begun.add(one.topic)
            else:
                self._unstored.add(Partition(one.topic, one.partition))
                refused = found
        if refused is not None:
            self._refused(refused)
        else:
            self.why = ""
            self._said.clear()

    def _refused(self, error: KafkaError) -> None:
        """Log each cause once, until offsets are stored again."""
        code = error.code()
        if code in DENIED:
            self._fail(reading_failure(error, "storing offsets"))
        if code in PASSING:
            return
        self._bare = self._bare or code == _TOO_LONG
        self.why = (
            f"offsets of group {self._group!r} are not stored:"
            f" {error.str()} ({error.name()})"
        )
        if code not in self._said:
            self._said.add(code)
            _log.warning(f"{self.why}; they are stored again")

    def take_unstored(self) -> set[Partition]:
        """Return whose offset could not be stored since this was asked last."""
        found, self._unstored = self._unstored, set()
        return found

    def see_begun(self, topics: Iterable[str]) -> None:
        """Note that the group has offsets of these, whoever stored them."""
        self._begun.update(topics)

    def take_begun(self) -> set[str]:
        """Return the topics of which the group was seen to have offsets since then."""
        found, self._begun = self._begun, set()
        return found

    def forget(self, places: Iterable[Partition]) -> None:
        """Note that these partitions belong to another member."""
        self._unstored.difference_update(places)


def _error_of(consumer: Consumer, where: list[TopicPartition]) -> KafkaError | None:
    """Store these, and wait; give the first error."""
    try:
        answers = consumer.commit(offsets=where, asynchronous=False) or ()
    except KafkaException as error:
        found: KafkaError = error.args[0]
        return found
    return next((one.error for one in answers if one.error is not None), None)
