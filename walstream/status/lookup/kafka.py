"""Asks how one chained source is: its group, and its state folder."""

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from walstream.config import KafkaSource
from walstream.config.tls import confined
from walstream.errors import WalstreamError
from walstream.kafka.advertised_listeners import Whereabouts
from walstream.kafka.group import gap, places
from walstream.kafka.offsets import GroupOffset, Partition
from walstream.kafka.producer_config import client_properties
from walstream.sources.figures import RELAY_FIGURES
from walstream.sources.kafka.source_topics import begun_by, offsets_gone
from walstream.sources.report import LAST_ERROR
from walstream.state.store import LmdbStore
from walstream.status.kafka import GroupSight, StoredRelay

_ASK_S: Final = 5.0
_DELETED: Final = "Kafka deleted them, or the topic was deleted and created again"


def look(name: str, source: KafkaSource, folder: Path) -> GroupSight:
    """Ask the upstream brokers; never raises WalstreamError.

    The source's state `folder` knows which offsets the group has had.
    """
    consumer = client_properties(source.consumer)
    try:
        Whereabouts(consumer, confined(name, source)).look(_ASK_S)
        found = places(source.consumer, source.group, source.topics, _ASK_S)
    except WalstreamError as error:
        return GroupSight(unreachable=error)
    there = {place.topic for place in found}
    return GroupSight(
        found,
        tuple(sorted(set(source.topics) - there)),
        _lost(source, found) or _gone(source, found, folder),
    )


def _lost(
    source: KafkaSource, found: Mapping[Partition, GroupOffset]
) -> WalstreamError | None:
    """Return a message that what comes next in some partition is not there."""
    for where, place in found.items():
        if place.gap:
            return gap(source.consumer, source.group, where, place.stored)
    return None


def _gone(
    source: KafkaSource, found: Mapping[Partition, GroupOffset], folder: Path
) -> WalstreamError | None:
    """Return a message that the group has lost the offsets of some topic."""
    known = {where.topic for where, place in found.items() if place.stored is not None}
    begun: dict[str, str] = {}
    # what is wrong with the folder is said by who looks at it
    with (
        contextlib.suppress(WalstreamError),
        LmdbStore.open_read_only(folder) as positions,
    ):
        begun = begun_by(source, positions) if positions else {}
    for topic in sorted({where.topic for where in found} - known):
        if topic in begun:
            return offsets_gone(source, topic, _DELETED)
    return None


def kept_of(folder: Path) -> StoredRelay:
    """Read a source's folder, beside whoever uses it."""
    try:
        with LmdbStore.open_read_only(folder) as positions:
            if positions is None:
                return StoredRelay()
            positions.check_format()
            return StoredRelay(
                RELAY_FIGURES.read(positions),
                LAST_ERROR.read(positions),
            )
    except WalstreamError as error:
        return StoredRelay(problem=error)
