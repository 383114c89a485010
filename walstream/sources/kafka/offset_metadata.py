"""Metadata of a partition's offset, stored in the group itself: pure.

Who gets the partition next, here or on another machine, goes on with what was known at
that very offset. A state folder would tell what was known when it was last here.
"""

import json
from typing import Final, NamedTuple

_LONGEST: Final = 2000  # bytes; brokers take 4096


class OffsetMetadata(NamedTuple):
    """State after one record of a partition."""

    topic: str = ""  # the id of this very topic: another of its name has other offsets
    source: str = ""  # the last `walstream-source`
    table: tuple[str, str] | None = None  # schema and name in the last op
    replay: str = ""  # of what positions in Kafka have to be, to count

    def written(self) -> str:
        """Write it down as an offset's metadata."""
        found: dict[str, object] = {"topic": self.topic, "source": self.source}
        if self.table:
            found["table"] = self.table
        if self.replay:
            found["replay"] = self.replay
        text = json.dumps(found)
        if len(text) > _LONGEST:  # some record claims what no server would name so
            text = self._replace(source="", table=None).written()
        return text


NOTHING_NOTED: Final = OffsetMetadata()


def read(text: str | None) -> OffsetMetadata:
    """Read an offset's metadata; whatever is not ours says nothing."""
    try:
        found = json.loads(text or "{}")
        topic, source = found.get("topic", ""), found.get("source", "")
        table, replay = found.get("table"), found.get("replay", "")
        if {type(topic), type(source), type(replay)} != {str}:
            return NOTHING_NOTED
        if table is None:
            return OffsetMetadata(topic, source, replay=replay)
        schema, name = table
    except (AttributeError, RecursionError, TypeError, ValueError):
        return NOTHING_NOTED
    if not (isinstance(schema, str) and isinstance(name, str)):
        return NOTHING_NOTED
    return OffsetMetadata(topic, source, (schema, name), replay)
