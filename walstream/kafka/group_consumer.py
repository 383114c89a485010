"""A member of a consumer group: reads several topics, and stores offsets in the group.

Offsets move only when they are told: nothing is stored by itself. An offset that the
topic no longer has is an error and never skipped. What is kept beside each offset is
its reader's business.
"""

import logging
from collections.abc import Iterable, Mapping
from typing import Final

import structlog
from confluent_kafka import Consumer, KafkaException, TopicPartition

from walstream.config.librdkafka import ClientProperties
from walstream.kafka.errors import unfit
from walstream.kafka.group import GroupListener, upstream_properties
from walstream.kafka.group_start import GroupStart
from walstream.kafka.member_trouble import MemberTrouble
from walstream.kafka.oauth_token import prepared
from walstream.kafka.offset_commit import OffsetCommit
from walstream.kafka.offsets import Partition
from walstream.kafka.topic_reader import TopicRecord, record_of

_AWAY_ASK_S: Final = 0.5
_log = structlog.get_logger()


class GroupConsumer:
    """One membership, from `subscribe` to `close`."""

    def __init__(
        self,
        given: ClientProperties,
        group: str,
        topics: Iterable[str],
        who: GroupListener,
    ) -> None:
        self._topics = list(topics)
        self._who = who
        properties = upstream_properties(given, group)
        strategy = str(properties.get("partition.assignment.strategy", "cooperative"))
        self._incremental = "cooperative" in strategy
        self._paused = False
        self._places: set[Partition] = set()
        self._trouble = MemberTrouble(dict(given), group)
        self.storing = OffsetCommit(group, self._trouble.fail)
        self._start = GroupStart(dict(given), group, who, self.storing)
        try:
            self._consumer = Consumer(
                {
                    **prepared(properties),
                    "error_cb": self._trouble.hear,
                    "on_commit": self.storing.heard,
                },
                logger=logging.getLogger("librdkafka"),
            )
        except KafkaException as error:
            raise unfit(error, "consumer properties", given) from error

    @property
    def away(self) -> str:
        """Reason why no broker answers, as far as known; "" if one does."""
        return self._trouble.away

    def subscribe(self) -> None:
        """Join the group. Topics that are missing are waited for."""
        self._consumer.subscribe(
            self._topics,
            on_assign=self._assigned,
            on_revoke=self._revoked,
            on_lost=self._lost,
        )

    def poll(self, timeout_s: float, limit: int) -> list[TopicRecord]:
        """Return arrived records, or wait for one; serve the group meanwhile."""
        # one call: what was fetched before a partition was taken must not come after
        messages = self._consumer.consume(limit, timeout=0)
        trouble = self._trouble
        if not messages and trouble.failure is None:
            first = self._consumer.poll(timeout_s)
            messages = [] if first is None else [first]
        records = []
        for message in messages:
            error = message.error()
            if error is None:
                records.append(record_of(message))
            else:
                topic, number = message.topic() or "", message.partition()
                trouble.meet(error, topic, number, message.offset())
        if trouble.failure is not None:
            raise trouble.failure
        return records

    def pause(self, *, paused: bool) -> None:
        """Pause or resume fetching; the membership stays."""
        if paused == self._paused:
            return
        self._paused = paused
        places = [TopicPartition(*place) for place in self._places]
        if places:
            (self._consumer.pause if paused else self._consumer.resume)(places)

    def store(
        self, offsets: Mapping[Partition, tuple[int, str]], *, wait: bool
    ) -> None:
        """Store offsets and their metadata; after a failure they are stored again.

        Raises Transient when they were to be waited for and were not taken.
        """
        self.storing.store(self._consumer, offsets, wait=wait)

    def positions(self, places: Iterable[Partition]) -> dict[Partition, int]:
        """Return the offset behind what `poll` gave of each, markers counted too."""
        where = [TopicPartition(*place) for place in places]
        return {
            Partition(one.topic, one.partition): one.offset
            for one in (self._consumer.position(where) if where else ())
            if one.error is None and one.offset >= 0
        }

    def ends(self, places: Iterable[Partition]) -> dict[Partition, int]:
        """Return where partitions end, as far as it was heard: no broker is asked."""
        found = {}
        for place in places:
            _, end = self._consumer.get_watermark_offsets(
                TopicPartition(*place), cached=True
            )
            if end >= 0:
                found[place] = end
        return found

    def look(self) -> None:
        """See whether brokers that were away answer again."""
        try:
            self._consumer.list_topics(self._topics[0], timeout=_AWAY_ASK_S)
        except KafkaException:
            return
        self._trouble.end_outage()

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()

    def _assigned(self, _: Consumer, where: list[TopicPartition]) -> None:
        self._trouble.guard(lambda: self._take(where))
        if self._trouble.failure is not None:
            # else the client begins by itself, where nobody told it to
            self._assign([])

    def _assign(self, where: list[TopicPartition]) -> None:
        if self._incremental:
            self._consumer.incremental_assign(where)
        else:
            self._consumer.assign(where)

    def _take(self, where: list[TopicPartition]) -> None:
        stored = self._start.begun(self._consumer, where)
        for one in where:
            place = Partition(one.topic, one.partition)
            one.offset = self._start.first(stored[place], place)
        self._who.assigned(stored)
        for place in stored:
            _log.info("partition assigned", topic=place.topic, partition=place.number)
        self._places |= stored.keys()
        self._assign(where)
        if self._paused and where:
            self._consumer.pause(where)

    def _revoked(self, _: Consumer, where: list[TopicPartition]) -> None:
        places = _places(where)
        self._trouble.guard(lambda: self._who.revoked(places))
        self._leave(where)

    def _lost(self, _: Consumer, where: list[TopicPartition]) -> None:
        places = _places(where)
        for place in places:
            _log.warning("partition lost", topic=place.topic, partition=place.number)
        self._trouble.guard(lambda: self._who.lost(places))
        self._leave(where)

    def _leave(self, where: list[TopicPartition]) -> None:
        places = _places(where)
        if self._paused and places:
            # the client keeps a pause, and it may come back later
            self._consumer.resume(where)
        self._places.difference_update(places)
        self.storing.forget(places)
        if self._incremental:
            self._consumer.incremental_unassign(where)
        else:
            self._consumer.unassign()


def _places(where: Iterable[TopicPartition]) -> list[Partition]:
    return [Partition(one.topic, one.partition) for one in where]
