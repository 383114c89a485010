"""Reads from Kafka how far a producer's committed transactions go."""

from collections.abc import Callable
from typing import Final

from walstream.config.librdkafka import ClientProperties
from walstream.errors import Transient
from walstream.kafka.offsets import OffsetBounds, Partition
from walstream.kafka.topic_reader import TopicReader
from walstream.telemetry import runtime

_BACK: Final = (64, 1024, 16_384, 1 << 40)  # offsets before the end, by turns
_ANSWER_S: Final = 5.0  # of brokers: who closes the sink waits for it
READ_S: Final = 30.0
_POLL_S: Final = 0.2


def read_position(
    client: ClientProperties,
    topic: str,
    key: bytes,
    stopped: Callable[[], bool],
    wait_s: float = READ_S,
) -> bytes | None:
    """Return the last position under a key, as it was written; None: there is none.

    Waits for transactions of others in the topic, which are brief. Raises Transient
    where that takes too long: `wait_s` without a record.
    """
    place = Partition(topic, 0)
    # the end as it is, not as of the first transaction that is open
    as_it_is = {**client, "isolation.level": "read_uncommitted"}
    with TopicReader(as_it_is, _ANSWER_S) as reader:
        bounds = reader.bounds([topic])[place]
    begins = [max(bounds.first, bounds.end - back) for back in _BACK]
    with TopicReader(client, _ANSWER_S) as reader:
        for begin in dict.fromkeys(begins):
            found = _newest(
                reader, place, OffsetBounds(begin, bounds.end), key, stopped, wait_s
            )
            if found is not None:
                return found
    return None


def _newest(  # noqa: PLR0913, PLR0917 - of one place
    reader: TopicReader,
    place: Partition,
    bounds: OffsetBounds,
    key: bytes,
    stopped: Callable[[], bool],
    wait_s: float,
) -> bytes | None:
    found: bytes | None = None
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
                found = record.value
        if stopped():
            raise Transient("closed before the position in Kafka was read")
        if runtime.monotonic() > deadline:
            raise Transient(
                f"reading topic {place.topic!r}: it does not come to its end",
                hint="a transaction may be open there: walstream tries again",
            )
    return found
