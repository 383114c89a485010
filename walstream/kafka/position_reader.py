"""Reads from Kafka how far a producer's committed transactions go."""

from collections.abc import Callable
from typing import Final

from walstream.config.librdkafka import ClientProperties
from walstream.errors import Transient
from walstream.kafka.offsets import OffsetBounds, Partition
from walstream.kafka.topic_reader import TopicReader, TopicRecord
from walstream.telemetry import runtime

_BACK: Final = (64, 1024, 16_384, 1 << 40)  # offsets before the end, by turns
_ANSWER_S: Final = 5.0  # of brokers: who closes the sink waits for it
READ_S: Final = 30.0
_POLL_S: Final = 0.2


class PositionHidden(Transient):
    """The last position is behind a transaction that is open, of whomever."""


def read_position(  # noqa: PLR0913 - keywords
    client: ClientProperties,
    topic: str,
    key: bytes,
    stopped: Callable[[], bool],
    wait_s: float = READ_S,
    *,
    is_delivered: Callable[[bytes], bool] = lambda _value: False,
) -> bytes | None:
    """Return the last position under a key, as it was written; None: there is none.

    Waits for transactions of others only where one began before the last record of the
    key, and was not ended; and not if `is_delivered` says that all it covers is there,
    committed or not. Raises PositionHidden where it takes too long: `wait_s` without a
    record; and Transient where brokers do not answer.
    """
    place = Partition(topic, 0)
    # as it is: what others have open, and for how long, is not to hold up anybody
    as_it_is = {**client, "isolation.level": "read_uncommitted"}
    with TopicReader(as_it_is, _ANSWER_S) as reader:
        bounds = reader.bounds([topic])[place]
        last = _newest(reader, place, bounds, key, stopped, wait_s)
    if last is None or last.value is None or is_delivered(last.value):
        return None if last is None else last.value
    told = OffsetBounds(bounds.first, last.offset + 1)
    with TopicReader(client, _ANSWER_S) as reader:
        found = _newest(reader, place, told, key, stopped, wait_s)
    return None if found is None else found.value


def _newest(  # noqa: PLR0913, PLR0917 - of one place
    reader: TopicReader,
    place: Partition,
    bounds: OffsetBounds,
    key: bytes,
    stopped: Callable[[], bool],
    wait_s: float,
) -> TopicRecord | None:
    """Return the last record of a key within bounds, as far as a reader is shown it."""
    begins = [max(bounds.first, bounds.end - back) for back in _BACK]
    for begin in dict.fromkeys(begins):
        where = OffsetBounds(begin, bounds.end)
        found = _read(reader, place, where, key, stopped, wait_s)
        if found is not None:
            return found
    return None


def _read(  # noqa: PLR0913, PLR0917 - likewise
    reader: TopicReader,
    place: Partition,
    bounds: OffsetBounds,
    key: bytes,
    stopped: Callable[[], bool],
    wait_s: float,
) -> TopicRecord | None:
    found: TopicRecord | None = None
    is_read = False
    reader.assign({place: bounds.first})
    deadline = runtime.monotonic() + wait_s
    # an empty topic is read, too: who may not read it is to hear of it now; but its
    # very end is not waited for, which other sinks write behind all the time
    while not (reader.reached({place: bounds}) and (is_read or reader.met_end(place))):
        records = reader.poll(_POLL_S)
        if records:
            is_read = True
            # a topic that is not compacted may be a long one
            deadline = runtime.monotonic() + wait_s
        for record in records:
            if record.key == key and record.value is not None:
                found = record
        if stopped():
            raise Transient("closed before the position in Kafka was read")
        if runtime.monotonic() > deadline:
            raise PositionHidden(
                f"reading topic {place.topic!r}: it does not come to its end",
                hint="a transaction may be open there: walstream tries again",
            )
    return found
