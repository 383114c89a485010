"""Start of a member in its assigned partitions, by the group's offsets.

A topic of which the group knows nothing is begun whole, and that is stored at once: of
a partition without an offset nobody could tell what was deleted before it was read.
"""

from typing import Final

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaException,
    TopicPartition,
)

from walstream.config.librdkafka import ClientProperties
from walstream.errors import HistoryError
from walstream.kafka.group import (
    GroupListener,
    StoredOffset,
    partitions,
    reading_failure,
    spelt,
)
from walstream.kafka.offset_commit import OffsetCommit
from walstream.kafka.offsets import Partition

_ASK_S: Final = 10.0
_LATEST: Final = {"latest", "largest", "end"}
_ERROR: Final = "error"


class GroupStart:
    """Start offsets, by `auto.offset.reset`, which the client does not get."""

    def __init__(
        self,
        given: ClientProperties,
        group: str,
        who: GroupListener,
        storing: OffsetCommit,
    ) -> None:
        self._given = given
        self._group = group
        self._who = who
        self._storing = storing
        self._begin = str(given.get("auto.offset.reset", "earliest")).lower()

    def begun(
        self, consumer: Consumer, where: list[TopicPartition]
    ) -> dict[Partition, StoredOffset]:
        """Return what the group knows of these, once it has begun their topics."""
        stored = self._stored(consumer, where)
        unknown = {place.topic for place, one in stored.items() if one.offset is None}
        for topic in sorted(unknown):
            self._begin_topic(consumer, topic)
        if unknown:  # another member may have begun one meanwhile
            stored = self._stored(consumer, where)
        known = {place.topic for place, one in stored.items() if one.offset is not None}
        self._storing.see_begun(known)
        return stored

    def first(self, stored: StoredOffset, place: Partition) -> int:
        """Return where to start: never beyond what the group has not read."""
        if stored.offset is not None:
            return stored.offset
        if self._begin == _ERROR:
            raise HistoryError(
                f"group {self._group!r} has no offset of {spelt(place)}, and"
                ' "auto.offset.reset" is "error"',
                hint="store one for the group, or remove the property: the group then "
                "starts with the oldest record",
            )
        return 0  # the partition was added: a jump over what was deleted must show

    def _stored(
        self, consumer: Consumer, where: list[TopicPartition]
    ) -> dict[Partition, StoredOffset]:
        if not where:
            return {}
        try:
            answers = consumer.committed(where, timeout=_ASK_S)
        except KafkaException as error:
            raise reading_failure(
                error.args[0], "asking for the group's offsets"
            ) from error
        found = {}
        for one in answers:
            if one.error is not None:
                raise reading_failure(
                    one.error, f"asking for the offset of {one.topic!r}"
                )
            offset = one.offset if one.offset >= 0 else None
            found[Partition(one.topic, one.partition)] = StoredOffset(
                offset, one.metadata or ""
            )
        return found

    def _begin_topic(self, consumer: Consumer, topic: str) -> None:
        """Begin a topic whole, unless the group knows some partition of it.

        Where it does, a partition was added: it is read from its first record on.
        """
        numbers = partitions(self._given, self._group, topic, _ASK_S)
        begin = OFFSET_END if self._begin in _LATEST else OFFSET_BEGINNING
        where = [TopicPartition(topic, number, begin) for number in numbers]
        # before the group is asked: who began it meanwhile has a word in its offsets
        asked = [] if self._begin == _ERROR else where
        firsts = consumer.offsets_for_times(asked, timeout=_ASK_S) if asked else []
        known = self._stored(consumer, where).values()
        if any(one.offset is not None for one in known):
            return
        note = self._who.begins(topic)
        for one in firsts:
            if one.error is not None:
                raise KafkaException(one.error)
        found = {
            Partition(one.topic, one.partition): (one.offset, note) for one in firsts
        }
        # at once: what comes now is read, or its deletion noticed, whatever happens
        self._storing.store(consumer, found, wait=True)
