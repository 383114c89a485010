"""Start of a group in its topics, by its offsets in Kafka alone.

A topic of which the group knows nothing is begun whole, and that is stored before a
record is handled: of a partition without an offset nobody could tell what was deleted
before it was read.
"""

from collections.abc import Collection, Container
from typing import Final

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaException,
    TopicPartition,
)

from consumer.group.assigned_partition import Place
from consumer.group.settings import FirstOffset

_ASK_S: Final = 1.0


class TopicStart:
    """Start offsets of partitions, by the group's. Asked outside of callbacks."""

    def __init__(self, begin: FirstOffset) -> None:
        self._begin = begin

    def offsets(
        self, consumer: Consumer, places: Collection[Place], held: Container[Place]
    ) -> dict[Place, int]:
        """Return where these begin; what is not known yet is left out.

        `held` are the member's own partitions. Raises KafkaException.
        """
        known = _stored(consumer, [TopicPartition(*place) for place in places])
        if self._begin is not FirstOffset.NOWHERE:  # else the client reports it
            unknown = {place.topic for place in places if place not in known}
            for topic in sorted(unknown):
                found = self._begin_topic(consumer, topic, held)
                known = found | known
        return {place: known[place] for place in places if place in known}

    def _begin_topic(
        self, consumer: Consumer, topic: str, held: Container[Place]
    ) -> dict[Place, int]:
        """Begin a topic whole, unless the group knows some partition of it.

        Where it does, the others were added: they are read from their first record on,
        and a jump over what was deleted shows. Otherwise the member that has partition
        0 begins it, so that no two do.
        """
        there = consumer.list_topics(topic, timeout=_ASK_S).topics[topic]
        begin = OFFSET_END if self._begin is FirstOffset.LATEST else OFFSET_BEGINNING
        where = [TopicPartition(topic, number, begin) for number in there.partitions]
        firsts = []
        if Place(topic, 0) in held:
            # before the group is asked: whoever began it meanwhile has offsets then
            firsts = consumer.offsets_for_times(where, timeout=_ASK_S)
        known = _stored(consumer, where)
        if known:
            added = {Place(topic, number): 0 for number in there.partitions}
            return added | known
        begun = [
            TopicPartition(*place, offset) for place, offset in _offsets(firsts).items()
        ]
        if not begun:
            return {}
        return _offsets(consumer.commit(offsets=begun, asynchronous=False) or [])


def _stored(consumer: Consumer, where: list[TopicPartition]) -> dict[Place, int]:
    """Return the group's offsets, of the partitions where it has some."""
    found = _offsets(consumer.committed(where, timeout=_ASK_S) if where else [])
    return {place: offset for place, offset in found.items() if offset >= 0}


def _offsets(answers: list[TopicPartition]) -> dict[Place, int]:
    """Return what was answered; raise KafkaException where that is an error."""
    for one in answers:
        if one.error is not None:
            raise KafkaException(one.error)
    return {Place(one.topic, one.partition): one.offset for one in answers}
