"""Figures of a source that are kept with its position, and outlive a restart."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from walstream.pipeline.state_document import StateDocument
from walstream.telemetry.tally import Counts


@dataclass(frozen=True, slots=True)
class StreamFigures:
    """A stream's."""

    at: float = 0.0  # unix seconds
    ops: int = 0  # read
    delivered: int = 0
    sinks: Mapping[str, Counts] = field(default_factory=dict)
    current_at: float = 0.0  # unix seconds: all was delivered then; 0: never


@dataclass(frozen=True, slots=True)
class RelayFigures:
    """A relay's."""

    at: float = 0.0  # unix seconds
    ops: int = 0  # records read, repeats too
    delivered: int = 0
    poisoned: Mapping[str, int] = field(default_factory=dict)  # records, by cause
    dropped: Mapping[str, int] = field(default_factory=dict)  # records, by sink


STREAM_FIGURES: Final = StateDocument("figures", StreamFigures)
RELAY_FIGURES: Final = StateDocument("figures", RelayFigures)
