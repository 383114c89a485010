"""The time in which every record of a topic was sent by the same rules: its era.

What a partition has says what a stream that begins again may leave out (`last_record`)
only as far as the streams before it would have put the same record there. So an era
begins with each change of what decides where a record goes, and with each rewind, and
records of earlier ones say nothing. Pure: no clock, no I/O.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

import orjson

from walstream.kafka.offsets import OffsetBounds
from walstream.kafka.topic import Topic
from walstream.lsn import Lsn
from walstream.pipeline.state_document import (
    Entries,
    StateDocument,
    StateDocuments,
    StoredDocuments,
)


@dataclass(frozen=True, slots=True)
class DeliveryEra:
    """The era of a sink's topic."""

    rules: str  # digest of all that decides where a record goes; "": it is over
    since: Lsn  # nothing from here on was sent in an earlier one
    begins: list[int]  # the first offset in each partition


ERAS: Final = StateDocuments("eras/", DeliveryEra)
"""By a sink's and a topic's name, `SINK/TOPIC`."""
EraDocument = StateDocument[DeliveryEra]
OVER: Final = DeliveryEra("", 0, [])


def rules_of(topic: Topic, told: object) -> str:
    """Digest what decides where a topic's records go; `told` is what JSON can hold.

    Its limit is a part of it: a record that is too large goes elsewhere, or nowhere.
    """
    found = topic.identity, topic.partitions, topic.layout, topic.limit
    text = orjson.dumps([told, *found], option=orjson.OPT_SORT_KEYS)
    return blake2b(text, digest_size=8).hexdigest()


def fresh(rules: str, since: Lsn, bounds: Iterable[OffsetBounds]) -> DeliveryEra:
    """Return an era that begins now, at the ends of its topic's partitions."""
    return DeliveryEra(rules, since, [bound.end for bound in bounds])


def ended(stored: StoredDocuments, sink: str = "") -> Entries:
    """Return what ends all eras, or a sink's, in a state folder; none: all are over."""
    entries: dict[str, object] = {}
    for name in ERAS.keys(stored):
        era = ERAS.of(name)
        if name.startswith(f"{sink}/" if sink else "") and era.read(stored) != OVER:
            entries |= era.entry(OVER)
    return entries


def of_sink(stored: StoredDocuments, sink: str) -> Mapping[str, object]:
    """Return the documents of a sink, for another state folder."""
    names = stored.names(f"{ERAS.prefix}{sink}/")
    return {name: stored.read(name) for name in names}
