"""The text of a JSON Schema -> Connect's schema of the data, and what differs in that.

As JsonSchemaData reads it: attributes `connect.…` say what JSON Schema has no word for.
JSON is read by itself, so that nothing of another schema is refused: what Connect has
no type for is a type without a name.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import orjson

from walstream.errors import WalstreamError
from walstream.formats.encodings.json_schema.conversion import (
    Convert,
    array,
    decimal,
    mapping,
    optional,
    pairs,
    struct,
)

Told = Mapping[str, Any]
"""A part of a schema, as its text has it."""

_SCALARS: Final[Mapping[tuple[object, object], str]] = {
    ("boolean", None): "boolean",
    ("integer", None): "int64",
    ("integer", "int8"): "int8",
    ("integer", "int16"): "int16",
    ("integer", "int32"): "int32",
    ("number", None): "double",
    ("number", "bytes"): "bytes",
    ("number", "float32"): "float",
    ("string", None): "string",
    ("string", "bytes"): "bytes",
}
"""Connect's types, by JSON Schema's word and `connect.type`."""
_DECIMAL: Final = "org.apache.kafka.connect.data.Decimal"
_DEEPEST: Final = 60  # types within each other
_UNKNOWN: Final[Mapping[str, Any]] = {"optional": True}
_OTHER_SHAPE: Final = (AttributeError, KeyError, TypeError, ValueError, RecursionError)


class BadJsonSchema(WalstreamError):
    """A text that is not a JSON Schema."""


class DataType(NamedTuple):
    """A type: Connect's schema of it, and what makes JsonConverter's JSON of a value.

    Without a conversion both have the same.
    """

    schema: Mapping[str, Any]
    convert: Convert | None = None
    exact: bool = False  # does it need the digits of numbers, which a float loses?


def parsed(text: str) -> DataType:
    """Read a schema's text; raise BadJsonSchema."""
    try:
        told = orjson.loads(text)
        if not isinstance(told, dict):
            raise TypeError
        types = _Types(told)
        found = types.of(told, 0)._replace(exact=types.has_numbers)
    except _OTHER_SHAPE as error:
        name = type(error).__name__
        raise BadJsonSchema(f"not a JSON Schema that can be read: {name}") from None
    return found


class _Types:
    """The types of one schema."""

    def __init__(self, whole: Told) -> None:
        self._whole = whole
        self._referred: dict[str, DataType] = {}
        self.has_numbers = False
        """Is there a decimal that is a number?"""

    def of(self, told: Any, depth: int) -> DataType:
        """Read a type."""
        if depth > _DEEPEST or not isinstance(told, dict):
            return DataType(_UNKNOWN)
        if "$ref" in told:
            return self._by_reference(told["$ref"], depth)
        for word in ("oneOf", "anyOf"):
            if word in told:
                return self._one_of(told[word], depth)
        words = told.get("type")
        if isinstance(words, list):
            return self._one_of([{**told, "type": one} for one in words], depth)
        return self._single(told, depth)

    def _single(self, told: Told, depth: int) -> DataType:
        word, kind = told.get("type"), told.get("connect.type")
        if word == "object":
            if kind == "map":
                values = self.of(told.get("additionalProperties"), depth + 1)
                return _map(
                    told, DataType({"type": "string", "optional": False}), values
                )
            return self._struct(told, depth)
        if word == "array":
            return self._array(told, kind, depth)
        if "enum" in told and word in {None, "string"}:
            return DataType(_named({"type": "string", "optional": False}, told))
        return self._scalar(told, word, kind)

    def _one_of(self, told: list[Any], depth: int) -> DataType:
        others = [one for one in told if one.get("type") != "null"]
        if len(others) != 1:
            return DataType(_UNKNOWN)
        found = self.of(others[0], depth + 1)
        convert = None if found.convert is None else optional(found.convert)
        return DataType({**found.schema, "optional": len(told) > 1}, convert)

    def _struct(self, told: Told, depth: int) -> DataType:
        fields = [(name, self.of(one, depth + 1)) for name, one in _placed(told)]
        schema: dict[str, Any] = {
            "type": "struct",
            "fields": [{**one.schema, "field": name} for name, one in fields],
            "optional": False,
        }
        converts = {name: one.convert for name, one in fields if one.convert}
        return DataType(_named(schema, told), struct(converts) if converts else None)

    def _array(self, told: Told, kind: object, depth: int) -> DataType:
        items = told.get("items")
        if kind == "map" and isinstance(items, dict) and "properties" in items:
            key = self.of(items["properties"].get("key"), depth + 1)
            value = self.of(items["properties"].get("value"), depth + 1)
            return _map(told, key, value, as_entries=True)
        item = self.of(items, depth + 1)
        schema = {"type": "array", "items": item.schema, "optional": False}
        convert = None if item.convert is None else array(item.convert)
        return DataType(_named(schema, told), convert)

    def _scalar(self, told: Told, word: object, kind: object) -> DataType:
        name = _SCALARS.get((word, kind)) or _SCALARS.get((word, None))
        if name is None:
            return DataType(_UNKNOWN)
        schema = _named({"type": name, "optional": False}, told)
        if word != "number":
            return DataType(schema)
        if schema.get("name") != _DECIMAL:
            return DataType(schema)
        self.has_numbers = True
        return DataType(schema, decimal(int(schema["parameters"]["scale"])))

    def _by_reference(self, place: str, depth: int) -> DataType:
        """Read a part that is named by its path, once; within itself it is unknown."""
        if place not in self._referred:
            self._referred[place] = DataType(_UNKNOWN)
            found: Any = self._whole
            for name in place.removeprefix("#").split("/")[1:]:
                found = found.get(name.replace("~1", "/").replace("~0", "~"))
            self._referred[place] = self.of(found, depth + 1)
        return self._referred[place]


def _placed(told: Told) -> list[tuple[str, Any]]:
    """Return an object's properties, in the order of Connect's fields."""
    found = told.get("properties") or {}
    places = []
    for number, (name, one) in enumerate(found.items()):
        index = one.get("connect.index", number) if isinstance(one, dict) else number
        places.append((index, number, name, one))
    return [(name, one) for _, _, name, one in sorted(places, key=lambda p: p[:2])]


def _map(
    told: Told, key: DataType, value: DataType, *, as_entries: bool = False
) -> DataType:
    schema = {
        "type": "map",
        "keys": key.schema,
        "values": value.schema,
        "optional": False,
    }
    convert: Convert | None = None
    if as_entries:
        named = key.schema.get("type") == "string"
        convert = pairs(key.convert, value.convert, named=named)
    elif value.convert is not None:
        convert = mapping(value.convert)
    return DataType(_named(schema, told), convert)


def _named(schema: dict[str, Any], told: Told) -> dict[str, Any]:
    """Add what Connect says of a type."""
    if told.get("title"):
        schema["name"] = str(told["title"])
    if told.get("connect.version"):
        schema["version"] = told["connect.version"]
    if told.get("description"):
        schema["doc"] = str(told["description"])
    parameters = told.get("connect.parameters")
    if parameters:
        schema["parameters"] = {str(key): str(one) for key, one in parameters.items()}
    if told.get("default") is not None:
        schema["default"] = told["default"]
    return schema
