"""Reads partitions that it chooses itself: one process reads all of a group's.

No other member takes partitions away, so none has to be waited for; and each begins
where the state says, not where Kafka does.
"""

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaException,
    Message,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exports, undeclared
    AdminClient,
    OffsetSpec,
)

from consumer.group.assigned_partition import Place
from consumer.group.broker_outage import OutageLog
from consumer.group.client_close import LEAVE_S, left
from consumer.group.settings import ClientProperties, admin_settings
from consumer.name_pattern import matcher
from walstream.errors import Transient

_LIST_S: Final = 10.0
_ASK_S: Final = 10.0
_BACK_S: Final = 0.5
_MOST: Final = 1000  # messages at once
_LATEST: Final = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # theirs
_OWN: Final[ClientProperties] = {
    "enable.auto.commit": False,  # the position is in the application's database
    "enable.partition.eof": True,  # records of Kafka's own take offsets, too
    "auto.offset.reset": "error",  # never skips what Kafka deleted
    "max.poll.interval.ms": 86_400_000,  # a handler may run long; nobody takes over
}
_log = logging.getLogger(__name__)


class TopicChoice:
    """The topics that are read: names and patterns, without the transaction topic."""

    def __init__(self, topics: Sequence[str], transactions: str) -> None:
        self.named = [one for one in topics if not one.startswith("^")]
        # librdkafka's expressions may match a part; matcher's names are whole
        expressions = [re.compile(one) for one in topics if one.startswith("^")]
        self._expressions: list[re.Pattern[str]] = expressions
        self._matches = matcher(self.named)
        self._transactions = transactions

    def __call__(self, topic: str) -> bool:
        """Return whether it is one; Kafka's own are only by their names."""
        if topic == self._transactions:
            return False
        if topic in self.named:
            return True
        if topic.startswith("__"):
            return False
        found = any(one.search(topic) for one in self._expressions)
        return found or self._matches(topic)


class PartitionReader:
    """One client, and what is asked beside it."""

    def __init__(self, settings: ClientProperties) -> None:
        self._outage = OutageLog(logging.getLogger("consumer.librdkafka"))
        hearing = self._outage.hearing(settings.get("error_cb"))
        self._client = Consumer(
            {**settings, **_OWN, "error_cb": hearing}, logger=self._outage
        )
        self._admin = AdminClient(
            admin_settings(settings),  # type: ignore[arg-type]  # callbacks, undeclared
            logger=logging.getLogger("consumer.librdkafka"),
        )
        self._asked: dict[Place, Future[Any]] = {}
        self._is_stale = False  # what the admin client knows of the brokers
        self._paused: set[Place] = set()

    def partitions(self, chosen: Callable[[str], bool]) -> dict[str, int]:
        """Return the number of partitions of each topic; raise Transient."""
        try:
            found = self._client.list_topics(timeout=_LIST_S)
        except KafkaException as error:
            raise Transient(f"asking for topics: {error.args[0]}") from error
        return {
            name: len(topic.partitions)
            for name, topic in found.topics.items()
            if topic.error is None and chosen(name)
        }

    def read(self, offsets: Mapping[Place, int]) -> None:
        """Read these, too."""
        self._client.incremental_assign(
            [TopicPartition(*place, offset) for place, offset in offsets.items()]
        )

    def seek(self, offsets: Mapping[Place, int]) -> None:
        """Read these again from there."""
        again = [TopicPartition(*place) for place in offsets]
        self._client.incremental_unassign(again)
        self._paused.difference_update(offsets)
        self.read(offsets)

    def poll(self, wait_s: float) -> list[Message]:
        """Return messages, and ends of partitions as such with an error."""
        messages: list[Message] = self._client.consume(_MOST, timeout=0)
        if not messages:
            first = self._client.poll(wait_s)
            messages = [] if first is None else [first]
        if self._outage.is_to_ask():
            with suppress(KafkaException):
                self._client.list_topics(timeout=_BACK_S)
                self._outage.end()
        return messages

    def let_rest(self, idle: set[Place]) -> None:
        """Fetch nothing of these, but of all others."""
        pausing, resuming = idle - self._paused, self._paused - idle
        if pausing:
            self._client.pause([TopicPartition(*place) for place in pausing])
        if resuming:
            self._client.resume([TopicPartition(*place) for place in resuming])
        self._paused = idle

    def ask_ends(self, places: Iterable[Place]) -> None:
        """Ask where partitions end; open transactions of a producer lie behind."""
        if self._is_stale:
            # it would go by what it learnt without a leader, for 15 minutes
            with suppress(KafkaException):
                self._admin.list_topics(timeout=_BACK_S)
        wanted = {TopicPartition(*place): _LATEST for place in places}
        asked = self._admin.list_offsets(
            wanted,
            isolation_level=IsolationLevel.READ_COMMITTED,
            request_timeout=_ASK_S,
        )
        self._asked = {Place(one.topic, one.partition): asked[one] for one in wanted}

    @property
    def is_asking(self) -> bool:
        return bool(self._asked)

    def ends(self) -> dict[Place, int] | None:
        """Return the answer, once it is there; without those that did not answer."""
        if not self._asked or not all(one.done() for one in self._asked.values()):
            return None
        answers, self._asked = self._asked, {}
        self._is_stale = False
        found = {}
        for place, answer in answers.items():
            try:
                offset = int(answer.result().offset)
            except KafkaException as error:
                self._is_stale = True
                _log.debug("asking where %s ends: %s", place, error)
            else:
                if offset < 0:  # librdkafka's answer where no broker gave one
                    self._is_stale = True
                else:
                    found[place] = offset
        return found

    def close(self) -> None:
        if not left(self._client.close):
            _log.warning("librdkafka did not finish closing within %.0f s", LEAVE_S)
