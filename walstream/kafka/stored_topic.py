"""Facts about each topic, stored between starts, and what a difference means: pure.

Keys are spread over the partitions that a topic had at first: another count would move
them, and a topic of the same name may be another one. How often they moved is the
topic's layout, from 1: records tell it from the second on, so that a reader knows that
older ones of a row may lie elsewhere.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from walstream.errors import ConfigError, Repair, TopicLost
from walstream.pipeline.state_document import StateDocument, StateDocuments


@dataclass(frozen=True, slots=True)
class StoredTopic:
    """Stored facts about a topic."""

    partitions: int
    identity: str  # another one of the same name has another
    keys: str | None = None  # as `keys_text` spells them; None: nobody asked
    layout: int = 1


TOPICS: Final = StateDocuments("topics/", StoredTopic)
"""By a sink's and a topic's name, `SINK/TOPIC`."""

ACCEPT: Final = Repair(command="walstream run --accept-partitions")
ACCEPT_HINT: Final = (
    "walstream run --accept-partitions, if readers can cope with a key's older "
    "records in another partition"
)
LAID_OUT: Final = (
    "keys of this topic move to other partitions from now on: older records of a row "
    "may be read after newer ones; each record carries the new layout "
    "(walstream-layout)"
)
CREATED_AGAIN: Final = "was created again: the records delivered before are gone"


def document_of(sink: str, topic: str) -> StateDocument[StoredTopic]:
    """Return the document of a topic."""
    return TOPICS.of(f"{sink}/{topic}")


def of_sink(stored: Mapping[str, StoredTopic], sink: str) -> dict[str, StoredTopic]:
    """Return the topics of a sink, by name, of those of all sinks."""
    prefix = f"{sink}/"
    return {
        name.removeprefix(prefix): one
        for name, one in stored.items()
        if name.startswith(prefix)
    }


def laid_out(found: StoredTopic, keys: str, before: StoredTopic | None) -> StoredTopic:
    """Add how keys are spread, and the layout, which follows what was kept."""
    layout = 1
    if before is not None and not created_again(found, before):
        count = found.partitions
        rekeyed = before.keys not in {None, keys} and count > 1
        layout = before.layout + (count != before.partitions or rekeyed)
    return replace(found, keys=keys, layout=layout)


def keys_text(partitioner: str, form: str, columns: Mapping[str, Sequence[str]]) -> str:
    """Spell what decides a record's partition; `columns` are partition keys."""
    return json.dumps([partitioner, form, dict(columns)], sort_keys=True)


def moved(found: StoredTopic, kept: StoredTopic) -> str:
    """Return what says that keys would change their partition; "" where none would."""
    now, before = found.partitions, kept.partitions
    if now == before:
        return ""
    return f"has {now} partitions, it had {before}: keys would move to others"


def created_again(found: StoredTopic, kept: StoredTopic) -> bool:
    """Return whether it is another topic of the same name."""
    return found.identity != kept.identity


def not_single(partitions: int) -> str:
    """Return what says that a topic's records have no order; "" where they have."""
    if partitions == 1:
        return ""
    return (
        f"has {partitions} partitions, and transactions are told in one, in the order "
        "of their commits"
    )


def several_partitions(sink: str, topic: str, what: str) -> ConfigError:
    """Make the error of a topic that `not_single` speaks of."""
    return ConfigError(
        f"topic {topic!r} {what}",
        hint=f"name another one in [sinks.{sink}], which walstream run creates, "
        "or delete this one: walstream check prints the command",
    )


def partitions_changed(topic: str, what: str) -> TopicLost:
    """Make the error of a topic that `moved` speaks of."""
    return TopicLost(f"topic {topic!r} {what}", hint=ACCEPT_HINT, repair=ACCEPT)
