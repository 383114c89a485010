"""Asks how one chained source is: its group, and its state folder."""

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
from walstream.sources.report import LAST_ERROR
from walstream.state.store import LmdbStore
from walstream.status.kafka import GroupSight, StoredRelay

_ASK_S: Final = 5.0


def look(name: str, source: KafkaSource) -> GroupSight:
    """Ask the upstream brokers; never raises WalstreamError."""
    consumer = client_properties(source.consumer)
    try:
        Whereabouts(consumer, confined(name, source)).look(_ASK_S)
        found = places(source.consumer, source.group, source.topics, _ASK_S)
    except WalstreamError as error:
        return GroupSight(unreachable=error)
    there = {place.topic for place in found}
    return GroupSight(
        found, tuple(sorted(set(source.topics) - there)), _lost(source, found)
    )


def _lost(
    source: KafkaSource, found: Mapping[Partition, GroupOffset]
) -> WalstreamError | None:
    """Return a message that what comes next in some partition is not there."""
    for where, place in found.items():
        if place.gap:
            return gap(source.consumer, source.group, where, place.stored)
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
