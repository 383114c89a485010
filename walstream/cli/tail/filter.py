"""Filters of changes, and of topics."""

import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import orjson

from walstream.cli.tail.content import Content
from walstream.cli.tail.escape import as_text
from walstream.errors import ConfigError
from walstream.kafka.topic_reader import TopicRecord
from walstream.records.router import matches

_NEAR: Final = 3
_LISTED: Final = 20
_INTERNAL: Final = "__"  # Kafka's own topics: no pattern means them


@dataclass(frozen=True, slots=True)
class TailFilter:
    """The filter of `--key` and `--table`."""

    key: str | None = None
    tables: Sequence[str] = ()

    def takes_record(self, record: TopicRecord) -> bool:
        """Compare the key as it is written, or the one element of its array."""
        if self.key is None:
            return True
        return record.key is not None and self.key in _spellings(record.key)

    def takes_content(self, content: Content) -> bool:
        """Match `schema.table`, or the bare name."""
        if not self.tables:
            return True
        names = {content.table, content.full_table}
        return any(
            name is not None and matches(pattern, name)
            for pattern in self.tables
            for name in names
        )


def _spellings(key: bytes) -> Sequence[str]:
    written = as_text(key)
    try:
        parts = orjson.loads(key)
    except ValueError:
        return (written,)
    if not isinstance(parts, list) or len(parts) != 1:
        return (written,)
    (part,) = parts
    return (written, part if isinstance(part, str) else written[1:-1].strip())


def matching(wanted: Sequence[str], existing: Collection[str]) -> set[str]:
    """Find the topics that these names and patterns mean."""
    return {topic for topic in existing if any(_means(one, topic) for one in wanted)}


def _means(wanted: str, topic: str) -> bool:
    if topic.startswith(_INTERNAL) and not wanted.startswith(_INTERNAL):
        return False
    return matches(wanted, topic)


def require(wanted: Sequence[str], existing: Collection[str]) -> None:
    """Raise ConfigError for a name, or a pattern, that means no topic."""
    for one in wanted:
        if not matching([one], existing):
            pattern = "*" in one or "?" in one
            what = "no topic matches" if pattern else "there is no topic"
            raise ConfigError(f"{what} {one!r}", hint=_suggestion(one, existing))


def nothing_named(existing: Collection[str]) -> ConfigError:
    """Make the error of a call that names no topic."""
    return ConfigError("which topic?", hint=_listing(existing))


def _suggestion(wanted: str, existing: Collection[str]) -> str:
    shown = [topic for topic in existing if not topic.startswith(_INTERNAL)]
    near = difflib.get_close_matches(wanted, shown, _NEAR)
    near += [topic for topic in sorted(shown) if wanted in topic and topic not in near]
    if near:
        return f"did you mean {' or '.join(near[:_NEAR])}?"
    return _listing(existing)


def _listing(existing: Collection[str]) -> str:
    shown = sorted(topic for topic in existing if not topic.startswith(_INTERNAL))
    if not shown:
        return "there is no topic at all yet: walstream run creates them"
    more = f" and {len(shown) - _LISTED} more" if len(shown) > _LISTED else ""
    return f"there are: {', '.join(shown[:_LISTED])}{more}"
