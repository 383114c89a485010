"""Types of a row's columns, of the text of an Avro schema: for people."""

from typing import Any, Final

import orjson

_ROWS: Final = frozenset({"before", "after", "old", "new", "data"})


def avro_fields(text: str) -> dict[str, tuple[str, bool]]:
    """Return the types of a row's columns, and whether each has a default.

    Raises AttributeError, KeyError, TypeError or ValueError for another text.
    """
    return _fields(orjson.loads(text))


def _fields(schema: Any) -> dict[str, tuple[str, bool]]:
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
