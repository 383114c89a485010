"""Transforms that rename topics: from a regular expression to a template, or names.

RegexRouter replaces the first match in a topic that matches as a whole. A table's topic
is computed; a template stands for all tables only where no name changes what matches.
"""

import re
from dataclasses import dataclass
from typing import Final

_SCHEMA: Final = "\ue000"  # stand for names in a topic
_TABLE: Final = "\ue001"
_ATOM: Final = r"(?:\[\^\\?\.\]|\.)[*+]\??"
_PART: Final = re.compile(rf"\((?:\?:|\?<\w+>)?{_ATOM}\)|{_ATOM}")
_LITERAL: Final = re.compile(r"\(?((?:[A-Za-z0-9_-]|\\-)+)\)?")
_DOT: Final = re.compile(r"\\\.|\[\.\]")
_REPLACED: Final = re.compile(r"\\(.)|\$(?:\{([A-Za-z]\w*)\}|([0-9]+))|(\$)|([^\\$]+)")
_TOPIC: Final = re.compile(r"(?:[a-zA-Z0-9._-]|\{schema\}|\{table\})+")


class Untranslatable(Exception):
    """An expression or a replacement that Python does not read as Java does."""


@dataclass(frozen=True, slots=True)
class TopicRoute:
    """One transform: topics that match get another name."""

    expression: str
    replacement: str

    def apply(self, topic: str) -> str:
        """Return the topic's new name; raises Untranslatable."""
        try:
            pattern = re.compile(re.sub(r"\(\?<([A-Za-z])", r"(?P<\1", self.expression))
        except (re.error, RecursionError):
            raise Untranslatable(f"{self.expression!r} is not known here") from None
        if not pattern.fullmatch(topic):
            return topic
        found = pattern.search(topic)
        if found is None:
            return topic
        return topic[: found.start()] + self._replaced(found) + topic[found.end() :]

    def _replaced(self, found: re.Match[str]) -> str:
        made = ""
        for piece in _REPLACED.finditer(self.replacement):
            escaped, name, number, lone, text = piece.groups()
            if lone or (name and name not in found.groupdict()):
                raise Untranslatable(f"{self.replacement!r} names no group")
            if number:
                made += _numbered(found, number)
            else:
                made += (found[name] or "") if name else escaped or text
        return made


def _numbered(found: re.Match[str], digits: str) -> str:
    """Return a group: as many digits are its number as there are groups."""
    length = 1
    groups = found.re.groups
    if int(digits[:1]) > groups:
        raise Untranslatable(f"${digits} is not a group")
    while length < len(digits) and int(digits[: length + 1]) <= groups:
        length += 1
    return (found[int(digits[:length])] or "") + digits[length:]


def route(routes: list[TopicRoute], topic: str) -> str:
    """Return the name that a topic has behind all of them."""
    for one in routes:
        topic = one.apply(topic)
    return topic


def template(routes: list[TopicRoute], prefix: str) -> str | None:
    """Return the template of the topics of all tables; None: there is none."""
    topic = f"{prefix}.{_SCHEMA}.{_TABLE}"
    for one in routes:
        if not _is_of_dots(one.expression, topic.split(".")):
            return None
        topic = one.apply(topic)
    found = topic.replace(_SCHEMA, "{schema}").replace(_TABLE, "{table}")
    return found if _TOPIC.fullmatch(found) else None


def _is_of_dots(expression: str, names: list[str]) -> bool:
    """Return whether nothing but the dots of a topic decides what matches.

    Literal parts come first, and are those of the prefix.
    """
    parts = _DOT.split(expression.removeprefix("^").removesuffix("$"))
    literal = True
    for number, part in enumerate(parts):
        if literal and number < len(names):
            found = _LITERAL.fullmatch(part)
            if found and found[1].replace("\\-", "-") == names[number]:
                continue
        literal = False
        if not _PART.fullmatch(part):
            return False
    return True
