"""Where two JSON texts differ, as they are spelt: `1.0` is not `1.00`.

Objects differ too if their members stand in another order. The fields of a Connect
schema are told by their names, not by their numbers.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

Node = str | list["Node"] | dict[str, "Node"] | None
"""A value: a scalar in its own spelling, or None where there is nothing."""
Path = tuple[str, ...]
ORDER: Final = "order"
_WORD: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}:,]|[^\[\]{}:,"]+')
_PAYLOAD: Final = ',"payload":'


@dataclass(frozen=True)
class Difference:
    """One value of two, and where it stands."""

    path: Path
    theirs: Node
    ours: Node


def tree(text: str) -> Node:
    """Read a text; of one with a schema that part is read once."""
    schema, behind, payload = text.partition(_PAYLOAD)
    if behind and text.startswith('{"schema":'):
        return {
            "schema": _tree(schema.removeprefix('{"schema":')),
            "payload": _tree(payload[:-1]),
        }
    return _tree(text)


@lru_cache(maxsize=200)
def _tree(text: str) -> Node:
    words = iter(_WORD.findall(text))
    found = _value(next(words), words)
    assert next(words, None) is None, "more than one value"
    return found


def _value(first: str, words: Iterator[str]) -> Node:
    if first == "[":
        return _array(words)
    if first == "{":
        return _object(words)
    return first


def _array(words: Iterator[str]) -> Node:
    found: list[Node] = []
    for word in words:
        if word == "]":
            break
        if word != ",":
            found.append(_value(word, words))
    named = [one.get("field") for one in found if isinstance(one, dict)]
    if found and len(named) == len(found) and None not in named:
        return {_text(str(one["field"])): one for one in found if isinstance(one, dict)}
    return found


def _object(words: Iterator[str]) -> dict[str, Node]:
    found: dict[str, Node] = {}
    for word in words:
        if word == "}":
            break
        if word != ",":
            assert next(words) == ":"
            found[_text(word)] = _value(next(words), words)
    return found


def _text(word: str) -> str:
    return str(json.loads(word))


def differences(theirs: Node, ours: Node, path: Path = ()) -> Iterator[Difference]:
    """Yield the innermost values that differ."""
    if theirs == ours and not isinstance(theirs, dict | list):
        return
    if isinstance(theirs, dict) and isinstance(ours, dict):
        yield from _of_objects(theirs, ours, path)
    elif isinstance(theirs, list) and isinstance(ours, list) and _same(theirs, ours):
        if theirs != ours:
            yield Difference((*path, ORDER), theirs, ours)
    elif (
        isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours)
    ):
        for number, (one, other) in enumerate(zip(theirs, ours, strict=True)):
            yield from differences(one, other, (*path, str(number)))
    elif theirs != ours:
        yield Difference(path, theirs, ours)


def _same(theirs: list[Node], ours: list[Node]) -> bool:
    """Tell whether two lists have the same members, in whatever order."""
    return sorted(map(repr, theirs)) == sorted(map(repr, ours))


def _of_objects(
    theirs: dict[str, Node], ours: dict[str, Node], path: Path
) -> Iterator[Difference]:
    if theirs is ours:
        return
    for name in {**theirs, **ours}:
        one, other = theirs.get(name), ours.get(name)
        yield from differences(one, other, (*path, name))
    orders = [
        [name for name in one if name in other]
        for one, other in ((theirs, ours), (ours, theirs))
    ]
    if orders[0] != orders[1]:
        shown = [json.dumps(order, ensure_ascii=False) for order in orders]
        yield Difference((*path, ORDER), *shown)
