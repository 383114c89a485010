"""What is kept of each topic between starts, and what a difference means: pure.

Keys are spread over the partitions that a topic had at first: another count would move
them, and a topic of the same name may be another one.
"""

from collections.abc import Mapping
from typing import Any, Final

from walstream.errors import Repair, TopicLost

Document = Mapping[str, Any]
"""{"partitions": 3, "identity": "..."}, by `document_name` in the state folder."""

ACCEPT: Final = Repair(command="walstream run --accept-partitions")
ACCEPT_HINT: Final = (
    "walstream run --accept-partitions, when readers can bear that a key's older"
    " records are in another partition"
)
CREATED_AGAIN: Final = "was created again: what was delivered before is gone"


def document_name(sink: str, topic: str) -> str:
    """Name the document of a topic."""
    return f"topics/{sink}/{topic}"


def document(partitions: int, identity: str) -> Document:
    """Write down what a topic is now."""
    return {"partitions": partitions, "identity": identity}


def moved(found: Document, kept: Document) -> str:
    """Say that keys would move to other partitions; "" where none would."""
    now, before = found["partitions"], kept["partitions"]
    if now == before:
        return ""
    return f"has {now} partitions, it had {before}: keys would move to others"


def created_again(found: Document, kept: Document) -> bool:
    """Tell whether it is another topic of the same name."""
    return bool(found["identity"] != kept["identity"])


def partitions_changed(topic: str, what: str) -> TopicLost:
    """Make the error of a topic that `moved` speaks of."""
    return TopicLost(f"topic {topic!r} {what}", hint=ACCEPT_HINT, repair=ACCEPT)
