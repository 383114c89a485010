"""A schema of Connect -> the text of an Avro schema, as AvroData of Apicurio makes it.

The same tree is always the same text, byte for byte that of Avro's own printer in Java:
a registry gives one id to it. What Avro has no word for is an attribute `connect.…`.
A type that has a name is written out at its first use alone.
"""

import re
from typing import Final

import orjson

from walstream.errors import ConfigError
from walstream.formats.debezium.connect import Schema
from walstream.formats.debezium.connect_type import KAFKA
from walstream.formats.debezium.json_text import inner_text
from walstream.formats.encodings.avro.tree import latin, turned

_TYPES: Final = {
    "boolean": "boolean",
    "bytes": "bytes",
    "double": "double",
    "float": "float",
    "int16": "int",
    "int32": "int",
    "int64": "long",
    "string": "string",
}
_LOGICAL: Final = {
    f"{KAFKA}Decimal": "decimal",
    f"{KAFKA}Date": "date",
    f"{KAFKA}Time": "time-millis",
    f"{KAFKA}Timestamp": "timestamp-millis",
}
_PRECISION: Final = "64"  # of a Decimal that does not say it
_ENTRY: Final = "io.confluent.connect.avro.MapEntry"
_FIELD: Final = re.compile("[A-Za-z_][A-Za-z0-9_]*")


def avro_schema(schema: Schema) -> str:
    """Write it; raise ConfigError for the name of a field that Avro does not allow."""
    return _Text().of(schema, "")


class _Text:
    """Writes one schema."""

    def __init__(self) -> None:
        self._named: set[str] = set()

    def of(self, schema: Schema, space: str) -> str:
        """Write a type within a namespace, with null if it may be that."""
        written = self._type(schema, space)
        if not schema.optional:
            return written
        return f'[{written},"null"]' if turned(schema) else f'["null",{written}]'

    def _type(self, schema: Schema, space: str) -> str:
        if schema.type == "struct":
            return self._record(schema, space)
        attributes = _attributes(schema)
        if schema.items is not None:
            body = f'"type":"array","items":{self.of(schema.items, space)}'
        elif schema.keys is not None and schema.values is not None:
            body = self._map(schema.keys, schema.values, space)
        else:
            name = _TYPES[schema.type]
            if not attributes:
                return f'"{name}"'
            body = f'"type":"{name}"'
        return f"{{{','.join([body, *attributes])}}}"

    def _record(self, schema: Schema, space: str) -> str:
        if schema.name in self._named:
            return self._reference(schema.name, space)
        within, head = self._name(schema.name, space)
        fields = ",".join(
            f'{{"name":"{_field_name(name)}","type":{self.of(field, within)}'
            f"{_default(field)}}}"
            for name, field in schema.fields
        )
        parts = [f'"type":"record",{head},"fields":[{fields}]', *_attributes(schema)]
        return f"{{{','.join(parts)}}}"

    def _map(self, keys: Schema, values: Schema, space: str) -> str:
        """Write a map; of other keys than texts, it is an array of pairs."""
        if keys.type == "string":
            return f'"type":"map","values":{self.of(values, space)}'
        if _ENTRY in self._named:
            entry = self._reference(_ENTRY, space)
        else:
            within, head = self._name(_ENTRY, space)
            fields = (
                f'{{"name":"key","type":{self.of(keys, within)}}},'
                f'{{"name":"value","type":{self.of(values, within)}}}'
            )
            entry = f'{{"type":"record",{head},"fields":[{fields}]}}'
        return f'"type":"array","items":{entry}'

    def _name(self, full: str, space: str) -> tuple[str, str]:
        """Return the namespace of a type, and what names it within another."""
        self._named.add(full)
        within, _, name = full.rpartition(".")
        head = f'"name":{inner_text(name)}'
        if within and within != space:
            head += f',"namespace":{inner_text(within)}'
        return within, head

    @staticmethod
    def _reference(full: str, space: str) -> str:
        within, _, name = full.rpartition(".")
        return inner_text(name if within == space else full)


def _attributes(schema: Schema) -> list[str]:
    """Return what Connect says of a type, in AvroData's order."""
    parts: list[str] = []
    told = dict(schema.parameters)
    logical = _LOGICAL.get(schema.name, "")
    if logical == "decimal":
        precision = told.get("connect.decimal.precision", _PRECISION)
        parts += [f'"scale":{told["scale"]}', f'"precision":{precision}']
    if schema.doc:
        parts.append(f'"connect.doc":{inner_text(schema.doc)}')
    if schema.version:
        parts.append(f'"connect.version":{schema.version}')
    if told:
        pairs = (f"{inner_text(name)}:{inner_text(one)}" for name, one in told.items())
        parts.append(f'"connect.parameters":{{{",".join(pairs)}}}')
    if turned(schema):
        parts.append(f'"connect.default":{_shown(schema)}')
    if schema.name:
        parts.append(f'"connect.name":{inner_text(schema.name)}')
    if schema.type == "int16":
        parts.append('"connect.type":"int16"')
    if logical:
        parts.append(f'"logicalType":"{logical}"')
    return parts


def _default(field: Schema) -> str:
    if turned(field):
        return f',"default":{_shown(field)}'
    return ',"default":null' if field.optional else ""


def _shown(schema: Schema) -> str:
    """Write a default: bytes are characters of Latin-1."""
    if schema.type == "bytes":
        return inner_text(latin(schema.default))
    if schema.type == "string":
        return inner_text(orjson.loads(schema.default))
    return schema.default


def _field_name(name: str) -> str:
    if _FIELD.fullmatch(name) is None:
        raise ConfigError(
            f"the field {name!r} has a name that Avro does not allow",
            hint='set adjust_fields = "avro", or rename the column',
        )
    return name
