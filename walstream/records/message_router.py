"""Logical messages -> topic and key, or nothing: pure.

Any role may write a message with any prefix, so one that can have no topic stops
nothing: it is refused and counted.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import orjson

from walstream.op import MessageOp
from walstream.records.router import matches

_PREFIX: Final = "{prefix}"
_OWN: Final = "walstream"
_LONGEST: Final = 249  # Kafka's limit
_REMEMBERED: Final = 10_000  # prefixes whose topics are kept


@dataclass(frozen=True, slots=True)
class MessageRules:
    """Rules of a sink for the messages that it takes."""

    prefixes: tuple[str, ...]  # names and patterns of * and ?
    topic: str  # a template of {prefix}
    key: str = ""  # a JSON pointer; "" for none
    debezium: bool = False  # its record of a message, not the content alone
    max_topics: int = 1000


class RefusedMessage(ValueError):
    """A message without a possible topic; the text says why, without its content."""


class MessageRouter:
    """Router of the messages of one sink."""

    def __init__(
        self,
        rules: MessageRules,
        spell: Callable[[str], str],
        is_taken: Callable[[str], bool] = lambda _topic: False,
    ) -> None:
        """`spell` writes a prefix as a topic may have it.

        `is_taken` tells whether a topic has other records than messages by now; one
        that the configuration names is the messages' own.
        """
        self.rules = rules
        self._spell = spell
        self._is_taken = is_taken if _PREFIX in rules.topic else lambda _topic: False
        self._topics: dict[str, str | None] = {}  # by prefix
        self._named: set[str] = set()

    def topic(self, prefix: str) -> str | None:
        """Name the topic of a prefix; None: the sink wants none such.

        Raises RefusedMessage where it can have none.
        """
        try:
            topic = self._topics[prefix]
        except KeyError:
            topic = self._find(prefix)
            if len(self._topics) >= _REMEMBERED:
                self._topics.clear()
            if len(prefix) <= _LONGEST:  # a longer one may have megabytes
                self._topics[prefix] = topic
        if topic is not None and self._is_taken(topic):
            raise RefusedMessage("its topic has other records")
        return topic

    def _find(self, prefix: str) -> str | None:
        if is_own(prefix) or not any(
            matches(pattern, prefix) for pattern in self.rules.prefixes
        ):
            return None
        topic = self.rules.topic.replace(_PREFIX, self._spell(prefix))
        if not 0 < len(topic) <= _LONGEST or topic in {".", ".."}:
            raise RefusedMessage(
                f"its topic would have {len(topic)} characters, which Kafka does not "
                "allow"
            )
        if topic not in self._named:
            if len(self._named) >= self.rules.max_topics:
                raise RefusedMessage(
                    f"prefixes name more than {self.rules.max_topics} topics "
                    "(max_topics)"
                )
            self._named.add(topic)
        return topic

    def key(self, message: MessageOp) -> bytes | None:
        """Return the key that the content has; None where there is none.

        There is none in a content that is not JSON. A text is its characters, anything
        else compact JSON.
        """
        if not self.rules.key:
            return None
        try:
            found = _at(orjson.loads(message.content), self.rules.key)
        except ValueError:
            return None
        if found is None:
            return None
        return found.encode() if isinstance(found, str) else orjson.dumps(found)


def is_own(prefix: str) -> bool:
    """Return whether such messages are walstream's own."""
    return prefix == _OWN or prefix.startswith(f"{_OWN}.")


def _at(document: object, pointer: str) -> object:
    """Follow a JSON pointer (RFC 6901); None: there is nothing."""
    for part in _parts(pointer):
        if isinstance(document, dict):
            document = document.get(part)
        elif isinstance(document, list):
            document = document[int(part)] if _is_index(part, document) else None
        else:
            return None
    return document


def _parts(pointer: str) -> Iterable[str]:
    return (
        part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]
    )


def _is_index(part: str, items: list[object]) -> bool:
    ascii_digits = part.isascii() and part.isdigit()
    return ascii_digits and (part == "0" or part[0] != "0") and int(part) < len(items)
