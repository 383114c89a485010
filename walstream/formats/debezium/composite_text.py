"""PostgreSQL's texts of arrays and of hstore, taken apart; and put together again."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final

Render = Callable[[str], str]

_BOUNDS: Final = re.compile(r"(?:\[-?[0-9]+:-?[0-9]+\])+=(?=\{)")
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_QUOTED: Final = r'"(?:[^"\\]|\\.)*"'
_PAIR: Final = re.compile(
    rf"({_QUOTED})=>({_QUOTED}|NULL)(?:, |$)", re.DOTALL | re.IGNORECASE
)
_PLAIN_ITEM: Final = re.compile(r'[^{}",\\\s]+')


def items(text: str, delimiter: str = ",") -> list[str | None]:
    """Return the items of an array, whatever its bounds and dimensions, in order.

    Raises ValueError for any other text.
    """
    bounds = _BOUNDS.match(text)
    literal = text[bounds.end() :] if bounds else text
    if literal[:1] != "{" or literal[-1:] != "}":
        raise ValueError("not an array")
    if '"' not in literal and literal.count("{") == 1:
        inner = literal[1:-1]
        if not inner:
            return []
        if "}" in inner:
            raise ValueError("not an array")
        found: list[str | None] = list(inner.split(delimiter))
        return (
            [None if one == "NULL" else one for one in found] if "N" in inner else found
        )
    return _tokens(literal, delimiter)


def _tokens(literal: str, delimiter: str) -> list[str | None]:
    token = _TOKENS.get(delimiter)
    if token is None:
        token = _TOKENS[delimiter] = re.compile(
            rf'[{{}}{delimiter}]|{_QUOTED}|[^{{}}{delimiter}"]+', re.DOTALL
        )
    found: list[str | None] = []
    depth = end = 0
    for part in token.finditer(literal):
        if part.start() != end:
            break
        end = part.end()
        one = part[0]
        if one in {"{", "}"}:
            depth += 1 if one == "{" else -1
        elif one == delimiter:
            pass
        elif one[0] == '"':
            found.append(_ESCAPE.sub(r"\1", one[1:-1]))
        else:
            found.append(None if one == "NULL" else one)
    if end != len(literal) or depth:
        raise ValueError("not an array")
    return found


_TOKENS: Final[dict[str, re.Pattern[str]]] = {}


def array(item: Render, delimiter: str = ",") -> Render:
    """Return what writes an array; one of more dimensions is flat."""

    def render(text: str) -> str:
        parts = ["null" if one is None else item(one) for one in items(text, delimiter)]
        return f"[{','.join(parts)}]"

    return render


def array_without_nulls(
    item: Render, delimiter: str, null: Callable[[], str]
) -> Render:
    """Return what writes an array, with what `null` returns in the place of each."""

    def render(text: str) -> str:
        parts = []
        for one in items(text, delimiter):
            written = "null" if one is None else item(one)
            parts.append(null() if written == "null" else written)
        return f"[{','.join(parts)}]"

    return render


def pairs(text: str) -> list[tuple[str, str | None]]:
    """Return the pairs of an hstore, in its order; raise ValueError for others."""
    found: list[tuple[str, str | None]] = []
    end = 0
    for pair in _PAIR.finditer(text):
        if pair.start() != end:
            break
        end = pair.end()
        value = pair[2]
        found.append((_bare(pair[1]), _bare(value) if value[0] == '"' else None))
    if end != len(text):
        raise ValueError("not an hstore")
    return found


def _bare(quoted: str) -> str:
    return _ESCAPE.sub(r"\1", quoted[1:-1])


def array_text(values: Iterable[str | None]) -> str:
    """Write an array of one dimension as PostgreSQL does."""
    return f"{{{','.join(map(_item_text, values))}}}"


def _item_text(value: str | None) -> str:
    if value is None:
        return "NULL"
    if _PLAIN_ITEM.fullmatch(value) and value.upper() != "NULL":
        return value
    return _quoted(value)


def hstore_text(values: Sequence[tuple[str, str | None]]) -> str:
    """Write an hstore as PostgreSQL does."""
    return ", ".join(
        f"{_quoted(key)}=>{'NULL' if value is None else _quoted(value)}"
        for key, value in values
    )


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
