"""The position that a relay writes in each of its Kafka transactions.

One of each upstream partition and sink: the offset below which the committed
transactions have all that the sink is sent of it. A member that gets the partition
leaves out what lies below, where the group's offset is older. Pure: no clock, no I/O.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import orjson

from walstream.kafka.start_report import StartReport
from walstream.kafka.transaction_plan import TransactionPlan
from walstream.lsn import Lsn
from walstream.pipeline.ledger import Counted
from walstream.sources.kafka.offset_ledger import Portion


@dataclass(frozen=True, slots=True)
class PartitionPosition:
    """Place up to which one upstream partition is copied."""

    offset: int  # of the next record
    topic_id: str  # of this very topic: another of its name has other offsets
    replay: str = ""  # the last replay, as it is noted beside the group's offset

    def encode(self) -> bytes:
        """Return the record's value."""
        fields = {"offset": self.offset, "topic_id": self.topic_id}
        if self.replay:
            fields["replay"] = self.replay
        return orjson.dumps(fields)


def decode_position(value: bytes) -> PartitionPosition | None:
    """Return what a record tells; None: nothing that a relay wrote."""
    try:
        found = orjson.loads(value)
        offset, topic_id = found["offset"], found["topic_id"]
        replay = found.get("replay", "")
    except (AttributeError, ValueError, KeyError, TypeError):
        return None
    if type(offset) is not int or {type(topic_id), type(replay)} != {str}:
        return None
    return PartitionPosition(offset, topic_id, replay)


class CopiedRecords:
    """Records of one upstream partition that a sink leaves out, or sends."""

    def __init__(
        self, plan: TransactionPlan, topic_id: str, begin: int, replay: str
    ) -> None:
        """Begin at the group's offset; nothing of another `replay` counts.

        There is a new one where an operator set the offset: what is read again is sent
        again, and what was told before stays without meaning.
        """
        self.plan = plan
        self._topic_id = topic_id
        self._begin = begin
        self._replay = replay
        self.until = 0  # records below are there
        self._last = b""

    @property
    def repeats(self) -> bool:
        """Return False: no op of it is known by its name."""
        return False

    def covered(self, _value: bytes | None) -> tuple[Lsn, int]:
        """Return none: offsets name these records."""
        return 0, -1

    def is_alone(self, _topic: str) -> bool:
        """Return False: nothing of it is known by its name."""
        return False

    def is_delivered(self, value: bytes) -> bool:
        """Return whether the group's offset is not before that of a position."""
        found = decode_position(value)
        return found is not None and found.offset <= self._begin

    def open(self, value: bytes | None) -> StartReport:
        """Take what Kafka has, before anything is sent; return what to say of it."""
        found = decode_position(value) if value is not None else None
        if found is None and value is not None:
            return self._again("what is under its name is not a position", is_bad=True)
        if found is None or found.offset <= self._begin:
            return StartReport(
                "Kafka has nothing beyond the group's offset", self._named
            )
        if found.topic_id != self._topic_id:
            return self._again("the topic was created again")
        if found.replay != self._replay:
            return self._again("the group's offset was set")
        self.until = found.offset
        said = {"begins": self._begin, "up_to": found.offset}
        return StartReport("what Kafka has already is left out", self._named | said)

    def _again(self, why: str, *, is_bad: bool = False) -> StartReport:
        said = {"begins": self._begin, "reason": why}
        text = "Kafka's position does not count: nothing is left out"
        return StartReport(text, self._named | said, is_bad=is_bad)

    @property
    def _named(self) -> dict[str, object]:
        return {"transactions": self.plan.id}

    def is_whole(self, _counted: Counted, _records: int) -> bool:
        """Return True: a portion ends where it is, and nothing of it is held then."""
        return True

    def position(self, sent: Iterable[Counted], *, whole: bool) -> bytes | None:
        """Return the position of a Kafka transaction that has these; None: as before.

        Where not all are there whole, it tells nothing.
        """
        if not whole:
            return None
        ends = [one.end for one in sent if isinstance(one, Portion)]
        if not ends:
            return None
        position = PartitionPosition(max(ends), self._topic_id, self._replay)
        told = position.encode()
        if told == self._last:
            return None
        self._last = told
        return told
