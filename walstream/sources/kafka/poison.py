"""Policy for a record that is not an op; its neighbours are not affected."""

from typing import Final

import structlog

from walstream.config import KafkaSource
from walstream.config.relay_rules import SKIP, STOP
from walstream.errors import HistoryError, WalstreamError
from walstream.kafka.group import offset_repair
from walstream.kafka.topic_reader import TopicRecord
from walstream.sources.kafka.envelope import Header
from walstream.sources.kafka.metrics import RelayMetrics
from walstream.sources.kafka.offset_ledger import Portion
from walstream.sources.kafka.relay_sink import RelaySink
from walstream.telemetry.fields import TOPIC

TOMBSTONE: Final = "a tombstone before any op: its table is unknown"
ILLEGAL: Final = (
    "its table would go to a topic that Kafka does not allow: map it in the sink's"
    " topics"
)
_log = structlog.get_logger()


class Unpassable(WalstreamError):
    """A record of which nobody can tell where it goes; its words are the cause."""


class PoisonOp(HistoryError):
    """A record is not an op, and `on_poison` says stop."""


class Poison:
    """Follows `on_poison`; counts, and says each cause once."""

    def __init__(
        self, source: KafkaSource, outlet: RelaySink, figures: RelayMetrics
    ) -> None:
        """`outlet` is where a topic that it goes to is."""
        self._source = source
        self._outlet = outlet
        self._figures = figures
        self._said: set[str] = set()

    def meet(self, record: TopicRecord, cause: str, portion: Portion) -> bool:
        """Pass it over, or aside; False: its topic is not known yet. May raise."""
        policy = self._source.on_poison
        if policy == STOP:
            raise self._error(record, cause)
        if policy != SKIP:
            topic = self._outlet.find_aside(policy)
            if topic is None:
                return False
            self._outlet.put_aside(topic, record, headers(record, cause), portion)
        self._count(record, cause, "is skipped" if policy == SKIP else "is parked")
        return True

    def _count(self, record: TopicRecord, cause: str, how: str) -> None:
        self._figures.poison(cause)
        if cause not in self._said:
            self._said.add(cause)
            _log.warning(
                f"record {how}, and counted; others like it are not logged",
                cause=cause,
                partition=record.partition,
                offset=record.offset,
                **{TOPIC: record.topic},
            )

    def _error(self, record: TopicRecord, cause: str) -> PoisonOp:
        source = self._source
        return PoisonOp(
            f"topic {record.topic!r} partition {record.partition} offset"
            f" {record.offset}: {cause}",
            hint="check who else writes there, and that the sink's format is that of "
            'the records; on_poison = "skip", or a topic\'s name, skips such '
            "records. Or skip only this one, while the group has no member",
            repair=offset_repair(
                source.consumer,
                source.group,
                f"{record.topic}:{record.partition}",
                f"--to-offset {record.offset + 1}",
            ),
        )


def headers(record: TopicRecord, cause: str) -> list[Header]:
    """Return where a record was, and what is wrong with it."""
    return [
        ("walstream-topic", record.topic.encode()),
        ("walstream-partition", str(record.partition).encode()),
        ("walstream-offset", str(record.offset).encode()),
        ("walstream-cause", cause.encode()),
    ]
