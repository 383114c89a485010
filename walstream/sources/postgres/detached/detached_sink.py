"""State of each sink that is not in its source's stream.

copying the slot is being copied; the source's own position covers the sink still away a
worker of its own streams to the sink, from the copy back it is in the source's stream
again; the copy is to be dropped dropped it was given up, as `on_failure` says: it no
longer gets anything
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from walstream.lsn import Lsn
from walstream.pipeline.state_document import StateDocument, StateDocuments

COPYING, AWAY, BACK, DROPPED = "copying", "away", "back", "dropped"


@dataclass(frozen=True, slots=True)
class DetachedSink:
    """State of one sink."""

    phase: str
    slot: str  # the copy
    since: float  # unix seconds
    why: str
    resume: Lsn  # from where somebody else goes on, or nobody


@dataclass(frozen=True, slots=True)
class HandoverPoint:
    """Place where one stream ends for a sink, and another begins."""

    at: Lsn


DETACHED: Final = StateDocuments("away/", DetachedSink)
"""By sink: none of one that is in the stream."""
JOINS: Final = StateDocuments("join/", HandoverPoint)
"""By sink: from where on the source's stream sends to one that comes back."""
ENDED: Final = StateDocument("ended", HandoverPoint)
"""In the state of a sink's own worker: all below is delivered, and no more."""


def folder_of(source_folder: Path, sink: str) -> Path:
    """Return where the positions of a sink are that is away."""
    return source_folder / "away" / sink
