"""Epoch of a source: how often its server's history changed.

It is part of each record's origin, since LSNs of two epochs cannot be compared.
"""

from dataclasses import dataclass
from typing import Final

from walstream.pipeline.state_document import StateDocument, StoredDocuments


@dataclass(frozen=True, slots=True)
class EpochNumber:
    """Epoch as it is stored."""

    number: int = 0


EPOCH: Final = StateDocument("epoch", EpochNumber)


def epoch_of(stored: StoredDocuments) -> int:
    """Return the epoch of a source: 0 at first."""
    return (EPOCH.read(stored) or EpochNumber()).number
