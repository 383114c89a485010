"""What is kept of each topic between starts, and what a difference means: pure.

Keys are spread over the partitions that a topic had at first: another count would move
them, and a topic of the same name may be another one. How often they moved is the
topic's layout, from 1: records tell it from the second on, so that a reader knows that
older ones of a row may lie elsewhere.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from walstream.errors import Repair, TopicLost

Document = Mapping[str, Any]
"""What is kept of a topic, by `document_name` in the state folder:
{"partitions": 3, "identity": "...", "keys": "...", "layout": 1}; the last two are of
this version on.
"""

TOPICS: Final = "topics/"
"""Before a sink's and a topic's name: such a document."""

ACCEPT: Final = Repair(command="walstream run --accept-partitions")
ACCEPT_HINT: Final = (
    "walstream run --accept-partitions, when readers can bear that a key's older"
    " records are in another partition"
)
LAID_OUT: Final = (
    "keys of this topic go to other partitions from now on: older records of a row may"
    " be read after newer ones, and each record says so (walstream-layout)"
)
CREATED_AGAIN: Final = "was created again: what was delivered before is gone"


def document_name(sink: str, topic: str) -> str:
    """Name the document of a topic."""
    return f"{TOPICS}{sink}/{topic}"


def document(partitions: int, identity: str) -> Document:
    """Write down what a topic is now."""
    return {"partitions": partitions, "identity": identity}


def laid_out(found: Document, keys: str, before: Document | None) -> Document:
    """Add how keys are spread, and the layout, which follows what was kept."""
    layout = 1
    if before is not None and not created_again(found, before):
        count = found["partitions"]
        rekeyed = keys != before.get("keys", keys) and count > 1
        layout = before.get("layout", 1) + (count != before["partitions"] or rekeyed)
    return {**found, "keys": keys, "layout": layout}


def keys_text(partitioner: str, form: str, columns: Mapping[str, Sequence[str]]) -> str:
    """Spell what decides a record's partition; `columns` are partition keys."""
    return json.dumps([partitioner, form, dict(columns)], sort_keys=True)


def moved(found: Document, kept: Document) -> str:
    """Return what says that keys would change their partition; "" where none would."""
    now, before = found["partitions"], kept["partitions"]
    if now == before:
        return ""
    return f"has {now} partitions, it had {before}: keys would move to others"


def created_again(found: Document, kept: Document) -> bool:
    """Return whether it is another topic of the same name."""
    return bool(found["identity"] != kept["identity"])


def partitions_changed(topic: str, what: str) -> TopicLost:
    """Make the error of a topic that `moved` speaks of."""
    return TopicLost(f"topic {topic!r} {what}", hint=ACCEPT_HINT, repair=ACCEPT)
