"""Differences of two versions of an Avro schema, field by field: pure.

A registry says that a version is not compatible, and rarely why in words of columns.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

_MOST: Final = 10
_ROWS: Final = frozenset({"before", "after"})


def differing(before: str, now: str) -> str:
    """Name the fields that differ; "" where that is not known."""
    try:
        one, other = _fields(orjson.loads(before)), _fields(orjson.loads(now))
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        return ""
    found = list(_compared(one, other))
    more = len(found) - _MOST
    return ", ".join(found[:_MOST]) + (f" and {more} more" if more > 0 else "")


def _compared(
    before: Mapping[str, tuple[str, bool]], now: Mapping[str, tuple[str, bool]]
) -> Iterator[str]:
    for name, (kind, default) in now.items():
        if name not in before:
            told = "" if default else ", which has no default"
            yield f"new field {name} {kind}{told}"
        elif before[name][0] != kind:
            yield f"field {name} was {before[name][0]} and is {kind}"
        elif before[name][1] != default:
            yield f"field {name} has {'a' if default else 'no'} default now"
    for name, (kind, default) in before.items():
        if name not in now:
            told = "" if default else ", which had no default"
            yield f"field {name} {kind} is gone{told}"


def _fields(schema: Any) -> dict[str, tuple[str, bool]]:
    """Return the types of a row's columns, and whether each has a default."""
    fields = {one["name"]: one for one in schema["fields"]}
    for name in _ROWS & fields.keys():
        kinds = fields[name]["type"]
        for kind in kinds if isinstance(kinds, list) else [kinds]:
            if isinstance(kind, dict) and "fields" in kind:
                return _fields(kind)
    return {
        name: (_kind(one["type"]), "default" in one) for name, one in fields.items()
    }


def _kind(told: Any) -> str:
    if isinstance(told, list):
        return " or ".join(_kind(one) for one in told)
    if isinstance(told, str):
        return told
    name = told.get("logicalType") or told.get("connect.name") or told["type"]
    if "scale" in told:
        return f"{name}({told.get('precision', '')},{told['scale']})"
    if told["type"] == "array":
        return f"array of {_kind(told['items'])}"
    labels = told.get("connect.parameters", {}).get("allowed")
    return f"{name}({labels})" if labels else str(name)
