"""Ranges of partitions in which a transaction is open.

Readers of what is committed get nothing from there on: so the two kinds of readers are
told different ends.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Final

import structlog
from confluent_kafka.admin import AdminClient

from walstream.config.librdkafka import ClientProperties
from walstream.errors import TopicLost, Transient, WalstreamError
from walstream.kafka import topic_ends
from walstream.kafka.admin_client import admin_client
from walstream.kafka.offsets import OffsetBounds, Partition
from walstream.kafka.topic_reader import TopicReader
from walstream.telemetry import runtime
from walstream.telemetry.fields import ERROR

_LOOK_S: Final = 10.0  # a partition without a leader is to hold up nothing for longer
_ANSWER_S: Final = 5.0  # of brokers: who closes the sink waits for it
_AGAIN_S: Final = 0.2
_MOST_AGAIN_S: Final = 2.0
_MOST_SHOWN: Final = 10
_log = structlog.get_logger()


class OpenRanges:
    """Asks brokers for them; `leaderless` tells where it could not."""

    def __init__(self, client: ClientProperties, stopped: Callable[[], bool]) -> None:
        """`client` is of a reader."""
        self._client = client
        self._stopped = stopped
        self._asks: AdminClient | None = None
        self.leaderless: set[Partition] = set()

    def reader(self, level: str) -> TopicReader:
        """Make one of this isolation.level."""
        # not an admin client: where a broker stands still, that ends the process
        return TopicReader({**self._client, "isolation.level": level}, _ANSWER_S)

    def look(self, partitions: Mapping[str, int]) -> dict[Partition, OffsetBounds]:
        """Return where open transactions begin, and their partitions end, by topics.

        Raises a WalstreamError where a broker does not say.
        """
        wanted = {
            Partition(topic, number)
            for topic, count in partitions.items()
            for number in range(count)
        }
        # in this order: what is committed meanwhile is not taken for open
        with self.reader("read_uncommitted") as reader:
            ends = reader.ends(wanted - self.leaderless)
        with self.reader("read_committed") as reader:
            stable = reader.ends(ends)
        return {
            one: OffsetBounds(first, ends[one])
            for one, first in stable.items()
            if first < ends[one]
        }

    def find(
        self, partitions: Mapping[str, int], *, patient: bool = False
    ) -> dict[Partition, OffsetBounds]:
        """Do so again and again; without those that have no leader for 10 s.

        Who is `patient` waits for brokers that do not answer for as long as it takes;
        else they are given up likewise. Raises Transient where that was stopped.
        """
        if not partitions:
            return {}
        deadline, told = runtime.monotonic() + _LOOK_S, ""
        while not self._stopped():
            is_late = runtime.monotonic() > deadline
            try:
                found = self.look(partitions)
            except WalstreamError as error:
                # of a partition without a leader librdkafka says that it is unknown,
                # for a while also once it has one
                known = self.leaderless
                self.leaderless = topic_ends.leaderless(self._admin(), partitions)
                waits = not is_late or (patient and error.retryable)
                passes = error.retryable or isinstance(error, TopicLost)
                if not (passes and waits) and self.leaderless == known:
                    return self._without_untold(partitions, error, patient=patient)
                if is_late and (why := str(error.args[0])) != told:
                    told = why
                    _log.warning(
                        "brokers do not tell what is open: they are waited for",
                        topics=_named(partitions),
                        **{ERROR: why},
                    )
            else:
                if not self.leaderless or is_late:
                    self._say_leaderless()
                    return found
                self.leaderless = topic_ends.leaderless(self._admin(), partitions)
            runtime.sleep(_MOST_AGAIN_S if self.leaderless else _AGAIN_S)
        raise Transient("closed before open transactions were looked for")

    def _without_untold(
        self, partitions: Mapping[str, int], error: WalstreamError, *, patient: bool
    ) -> dict[Partition, OffsetBounds]:
        """Return it of the topics of which brokers tell it; say which they are not."""
        told: Mapping[str, int] = {}
        if len(partitions) > 1 and (
            not error.retryable or isinstance(error, TopicLost)
        ):
            told = {
                topic: count
                for topic, count in partitions.items()
                if self._is_told(topic, count)
            }
        _log.warning(
            "it is not known whether transactions hang in partitions",
            topics=_named(partitions.keys() - told.keys()),
            **{ERROR: str(error.args[0])},
        )
        return self.find(told, patient=patient)

    def _is_told(self, topic: str, count: int) -> bool:
        try:
            self.look({topic: count})
        except WalstreamError as error:
            return error.retryable and not isinstance(error, TopicLost)
        return True

    def _say_leaderless(self) -> None:
        if self.leaderless:
            _log.warning(
                "partitions have no leader: whether transactions hang there is looked"
                " at before anything is sent to them",
                partitions=shown(self.leaderless),
            )

    def _admin(self) -> AdminClient:
        if self._asks is None:
            self._asks = admin_client(self._client, lambda _error: None)
        return self._asks


def _named(topics: Collection[str]) -> str:
    return ", ".join(sorted(topics)[:_MOST_SHOWN])


def shown(places: Collection[Partition]) -> str:
    """Name some partitions."""
    named = [f"{one.topic}[{one.number}]" for one in sorted(places)[:_MOST_SHOWN]]
    more = len(places) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")
