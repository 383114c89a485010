"""A schema of Connect -> the text of a JSON Schema, as JsonSchemaData makes it.

The same tree is always the same text: a registry gives one id to it. What JSON Schema
has no word for is an attribute `connect.…`; a field's place is `connect.index`, since
the properties of an object have no order. An object may have other properties, and
requires none, as with the converter's own settings.
"""

from typing import Final

from walstream.formats.debezium.connect import Schema
from walstream.formats.debezium.json_text import inner_text

_TYPES: Final = {
    "boolean": ("boolean", ""),
    "bytes": ("string", "bytes"),
    "double": ("number", "float64"),
    "float": ("number", "float32"),
    "int8": ("integer", "int8"),
    "int16": ("integer", "int16"),
    "int32": ("integer", "int32"),
    "int64": ("integer", "int64"),
    "string": ("string", ""),
}
"""Words of JSON Schema for types of Connect, and `connect.type` where it takes one."""
_MAP: Final = "map"
_SPECIAL: Final = frozenset({'"NaN"', '"Infinity"', '"-Infinity"'})


def json_schema(schema: Schema) -> str:
    """Write it."""
    return _optional(schema, None)


def _optional(schema: Schema, index: int | None) -> str:
    """Write a type, at its place among others, with null if it may be that."""
    if not schema.optional:
        return _type(schema, index)
    place = "" if index is None else f'"connect.index":{index},'
    return f'{{{place}"oneOf":[{{"type":"null"}},{_type(schema, None)}]}}'


def _type(schema: Schema, index: int | None) -> str:
    word, kind, body = _shape(schema)
    parts = [f'"type":"{word}"']
    if schema.name:
        parts.append(f'"title":{inner_text(schema.name)}')
    if schema.doc:
        parts.append(f'"description":{inner_text(schema.doc)}')
    if schema.default and (word != "number" or schema.default not in _SPECIAL):
        parts.append(f'"default":{schema.default}')
    parts += body
    if index is not None:
        parts.append(f'"connect.index":{index}')
    if schema.version:
        parts.append(f'"connect.version":{schema.version}')
    if kind:
        parts.append(f'"connect.type":"{kind}"')
    if schema.parameters:
        told = [f"{inner_text(k)}:{inner_text(v)}" for k, v in schema.parameters]
        parts.append(f'"connect.parameters":{{{",".join(told)}}}')
    return f"{{{','.join(parts)}}}"


def _shape(schema: Schema) -> tuple[str, str, list[str]]:
    """Return the word for a type, Connect's, and what it is made of."""
    if schema.type == "struct":
        fields = [
            f"{inner_text(name)}:{_optional(field, index)}"
            for index, (name, field) in enumerate(schema.fields)
        ]
        return "object", "", [f'"properties":{{{",".join(fields)}}}'] if fields else []
    if schema.items is not None:
        return "array", "", [f'"items":{_optional(schema.items, None)}']
    keys, values = schema.keys, schema.values
    if keys is None or values is None:
        word, kind = _TYPES[schema.type]
        return word, kind, []
    if keys.type == "string" and not keys.optional:
        return "object", _MAP, [f'"additionalProperties":{_optional(values, None)}']
    pair = f'"key":{_optional(keys, 0)},"value":{_optional(values, 1)}'
    return "array", _MAP, [f'"items":{{"type":"object","properties":{{{pair}}}}}']
