"""Marks of replays: what Kafka's positions are from before, and so do not count."""

from dataclasses import dataclass
from typing import Final

from walstream.pipeline.state_document import (
    Entries,
    StateDocument,
    StateDocuments,
    StoredDocuments,
)
from walstream.telemetry import runtime


@dataclass(frozen=True, slots=True)
class ReplayMark:
    """Mark of a replay that an operator, or a doubt, asked for."""

    token: str


REPLAY: Final = StateDocument("replay", ReplayMark)
"""Positions in Kafka that do not have it are from before the replay: none counts."""

REPLAYS: Final = StateDocuments("replays/", ReplayMark)
"""Likewise of one sink each, whose own position was of another history."""


def replay_entry(sink: str = "") -> Entries:
    """Return what makes all positions in Kafka count for nothing, or a sink's."""
    document = REPLAYS.of(sink) if sink else REPLAY
    return document.entry(ReplayMark(runtime.token_hex(8)))


def sink_replay(stored: StoredDocuments, sink: str) -> Entries:
    """Return a sink's own mark, for the state folder that is to have it, too."""
    own = REPLAYS.of(sink)
    found = own.read(stored)
    return {} if found is None else own.entry(found)


def joined(*marks: ReplayMark | None) -> ReplayMark | None:
    """Return the mark of several replays, which is another one after each of them."""
    tokens = [one.token for one in marks if one is not None]
    return ReplayMark("+".join(tokens)) if tokens else None
