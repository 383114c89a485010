"""A member of a consumer group: reads several topics, and stores offsets in the group.

Offsets move only when they are told: nothing is stored by itself. An offset that the
topic does not have any more stops, and is never jumped over. What is kept beside each
offset is its reader's business.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import structlog
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from walstream.config.librdkafka import ClientProperties
from walstream.errors import HistoryError, Restart, Transient, WalstreamError
from walstream.kafka.certificate import CertificateProbe
from walstream.kafka.connection_errors import Hearing, lacks_token
from walstream.kafka.errors import unfit
from walstream.kafka.group import (
    DENIED,
    GroupListener,
    StoredOffset,
    gap,
    partitions,
    reading_failure,
    spelt,
    upstream_properties,
)
from walstream.kafka.group_errors import reading_trouble
from walstream.kafka.oauth_token import prepared
from walstream.kafka.offset_commit import Storing
from walstream.kafka.offsets import Partition
from walstream.kafka.topic_reader import TopicRecord, record_of
from walstream.telemetry.fields import TOPIC

_ASK_S: Final = 10.0
_AWAY_ASK_S: Final = 0.5
_LATEST: Final = {"latest", "largest", "end"}
_ERROR: Final = "error"
_AWAY: Final = KafkaError._ALL_BROKERS_DOWN  # noqa: SLF001 - librdkafka's local code
_MISSING: Final = {
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001 - likewise
}
_OUT_OF_RANGE: Final = {
    KafkaError._AUTO_OFFSET_RESET,  # noqa: SLF001 - likewise
    KafkaError.OFFSET_OUT_OF_RANGE,
}
_LEFT: Final = KafkaError._MAX_POLL_EXCEEDED  # noqa: SLF001 - likewise
_log = structlog.get_logger()


class Upstream:
    """One membership, from `subscribe` to `close`."""

    def __init__(
        self,
        given: ClientProperties,
        group: str,
        topics: Iterable[str],
        who: GroupListener,
    ) -> None:
        self._given = dict(given)
        self._group = group
        self._topics = list(topics)
        self._who = who
        properties = upstream_properties(given, group)
        strategy = str(properties.get("partition.assignment.strategy", "cooperative"))
        self._incremental = "cooperative" in strategy
        self._begin = str(given.get("auto.offset.reset", "earliest")).lower()
        self._failure: WalstreamError | None = None
        self._told: set[str] = set()
        self._paused = False
        self._places: set[Partition] = set()
        self.storing = Storing(group, self._fail)
        self._is_away = False
        self._hearing = Hearing(CertificateProbe(given))
        try:
            self._consumer = Consumer(
                {
                    **prepared(properties),
                    "error_cb": self._hear,
                    "on_commit": self.storing.heard,
                },
                logger=logging.getLogger("librdkafka"),
            )
        except KafkaException as error:
            raise unfit(error, "consumer properties", given) from error

    @property
    def away(self) -> str:
        """Why no broker answers, as far as it is known; "" where one does."""
        if not self._is_away:
            return ""
        found = self._hearing.outage
        why = f": {found.why}: {found.hint}" if found else ""
        return f"upstream Kafka at {self.servers} does not answer{why}"

    @property
    def servers(self) -> str:
        return str(self._given.get("bootstrap.servers", ""))

    def subscribe(self) -> None:
        """Join the group. Topics that are missing are waited for."""
        self._consumer.subscribe(
            self._topics,
            on_assign=self._assigned,
            on_revoke=self._revoked,
            on_lost=self._lost,
        )

    def poll(self, timeout_s: float, limit: int) -> list[TopicRecord]:
        """Return records that are there, or wait for one; serve the group meanwhile."""
        # one call: what was fetched before a partition was taken must not come after
        messages = self._consumer.consume(limit, timeout=0)
        if not messages and self._failure is None:
            first = self._consumer.poll(timeout_s)
            messages = [] if first is None else [first]
        records = []
        for message in messages:
            if message.error() is None:
                records.append(record_of(message))
            else:
                self._meet(message)
        if self._failure is not None:
            raise self._failure
        return records

    def pause(self, *, paused: bool) -> None:
        """Fetch nothing, or go on; the membership stays."""
        if paused == self._paused:
            return
        self._paused = paused
        places = [TopicPartition(*place) for place in self._places]
        if places:
            (self._consumer.pause if paused else self._consumer.resume)(places)

    def store(
        self, offsets: Mapping[Partition, tuple[int, str]], *, wait: bool
    ) -> None:
        """Store offsets and what is kept beside them; failing, they are stored again.

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
        self._is_away = False
        self._hearing.end()

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()

    def _assigned(self, _: Consumer, where: list[TopicPartition]) -> None:
        self._guarded(lambda: self._take(where))
        if self._failure is not None:
            # else the client begins by itself, where nobody told it to
            self._assign([])

    def _assign(self, where: list[TopicPartition]) -> None:
        if self._incremental:
            self._consumer.incremental_assign(where)
        else:
            self._consumer.assign(where)

    def _take(self, where: list[TopicPartition]) -> None:
        stored = self._begun(where)
        for one in where:
            known = stored[Partition(one.topic, one.partition)]
            one.offset = self._first(known, Partition(one.topic, one.partition))
        self._who.assigned(stored)
        for place in stored:
            _log.info("partition assigned", topic=place.topic, partition=place.number)
        self._places |= stored.keys()
        self._assign(where)
        if self._paused and where:
            self._consumer.pause(where)

    def _stored(self, where: list[TopicPartition]) -> dict[Partition, StoredOffset]:
        if not where:
            return {}
        try:
            answers = self._consumer.committed(where, timeout=_ASK_S)
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

    def _first(self, stored: StoredOffset, place: Partition) -> int:
        """Decide where to begin: never beyond what the group has not read."""
        if stored.offset is not None:
            return stored.offset
        if self._begin == _ERROR:
            raise HistoryError(
                f"group {self._group!r} has no offset of {spelt(place)}, and"
                ' "auto.offset.reset" is "error"',
                hint="store one for the group, or leave the property out: it then"
                " begins with the oldest record",
            )
        return OFFSET_BEGINNING

    def _begun(self, where: list[TopicPartition]) -> dict[Partition, StoredOffset]:
        """Return what the group knows of these, once it has begun their topics."""
        stored = self._stored(where)
        unknown = {place.topic for place, one in stored.items() if one.offset is None}
        for topic in sorted(unknown):
            self._begin_topic(topic)
        # another member may have begun one meanwhile
        return self._stored(where) if unknown else stored

    def _begin_topic(self, topic: str) -> None:
        """Begin a topic whole, unless the group knows some partition of it.

        Where it does, a partition was added: it is read from its first record on.
        """
        numbers = partitions(self._given, self._group, topic, _ASK_S)
        latest = self._begin in _LATEST
        where = [TopicPartition(topic, number, OFFSET_END) for number in numbers]
        # before the group is asked: who began it meanwhile has a word in its offsets
        ends = self._consumer.offsets_for_times(where, timeout=_ASK_S) if latest else []
        if any(one.offset is not None for one in self._stored(where).values()):
            return
        note = self._who.begins(topic)
        for one in ends:
            if one.error is not None:
                raise KafkaException(one.error)
        found = {
            Partition(one.topic, one.partition): (one.offset, note) for one in ends
        }
        # at once: what comes now is read, whatever happens
        self.store(found, wait=True)

    def _revoked(self, _: Consumer, where: list[TopicPartition]) -> None:
        places = _places(where)
        self._guarded(lambda: self._who.revoked(places))
        self._leave(where)

    def _lost(self, _: Consumer, where: list[TopicPartition]) -> None:
        places = _places(where)
        for place in places:
            _log.warning("partition lost", topic=place.topic, partition=place.number)
        self._guarded(lambda: self._who.lost(places))
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

    def _guarded(self, work: Callable[[], None]) -> None:
        """Keep what a callback raises: librdkafka's thread of calls must go on."""
        try:
            work()
        except WalstreamError as error:
            self._fail(error)
        except KafkaException as error:
            self._fail(reading_failure(error.args[0], "taking partitions"))

    def _fail(self, error: WalstreamError) -> None:
        if self._failure is None or (self._failure.retryable and not error.retryable):
            self._failure = error

    def _hear(self, error: KafkaError) -> None:
        """Note trouble that belongs to no record."""
        self._hearing.hear(error)
        if lacks_token(error):
            return  # it asks again by itself, and the last one may be good for long
        if error.code() in DENIED:
            self._fail(reading_failure(error, f"reading from {self.servers}"))
        elif error.fatal():
            self._fail(Transient(f"the consumer gave up: {error.str()}"))
        elif error.code() == _AWAY:
            self._is_away = True

    def _meet(self, message: Message) -> None:
        """Note trouble with one topic or partition."""
        error = message.error()
        if error is None:
            return
        topic, code = message.topic() or "", error.code()
        if code in _MISSING:
            if topic not in self._told:
                self._told.add(topic)
                _log.warning("upstream topic is missing: waiting", **{TOPIC: topic})
        elif code in _OUT_OF_RANGE:
            place = Partition(topic, message.partition() or 0)
            self._fail(gap(self._given, self._group, place, message.offset()))
        elif code == _LEFT:
            self._fail(Restart(f"left the group: {error.str()}"))
        elif error.fatal() or code == _AWAY:
            self._hear(error)
        else:
            at = Partition(topic, message.partition() or 0) if topic else None
            found = reading_trouble(error, self._group, at, message.offset())
            if found is not None:
                self._fail(found)


def _places(where: Iterable[TopicPartition]) -> list[Partition]:
    return [Partition(one.topic, one.partition) for one in where]
