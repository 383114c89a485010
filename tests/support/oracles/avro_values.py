"""What a value says, read from Avro by fastavro, or from JSON."""

import json
import math
import struct
from base64 import b64decode
from typing import Any

from tests.support.oracles.debezium_avro import read
from walstream.formats.debezium.connect import Schema
from walstream.formats.debezium.connect import struct as struct_of
from walstream.formats.debezium.connect_type import ConnectType
from walstream.formats.encodings.avro import avro_schema


def said(found: ConnectType, written: bytes | None, shown: str = "") -> Any:
    """Return what a type's value says: in Avro, or in JSON."""
    if written is None:
        return comparable(meant(found.schema, json.loads(shown)))
    # without null: a writer knows of no branch
    schema = Schema(
        found.schema.type,
        name=found.schema.name,
        parameters=found.schema.parameters,
        fields=found.schema.fields,
        items=found.schema.items,
        keys=found.schema.keys,
        values=found.schema.values,
    )
    whole = avro_schema(struct_of("a.N", ("x", schema)))
    return comparable(read(whole, written)["x"])


def meant(schema: Schema, value: Any) -> Any:
    """Return what JSON means, as fastavro reads it from Avro."""
    if value is None:
        return None
    if schema.type == "struct":
        return {name: meant(one, value[name]) for name, one in schema.fields}
    if schema.items is not None:
        return [meant(schema.items, one) for one in value]
    if schema.keys is not None and schema.values is not None:
        return _map(schema.keys, schema.values, value)
    return _scalar(schema.type, value)


def _scalar(kind: str, value: Any) -> Any:
    if kind == "bytes":
        return b64decode(value)
    if kind == "float":
        return struct.unpack("f", struct.pack("f", float(value)))[0]
    return float(value) if kind == "double" else value


def _map(keys: Schema, values: Schema, value: Any) -> Any:
    if keys.type == "string":
        return {name: meant(values, one) for name, one in value.items()}
    return [{"key": key, "value": meant(values, one)} for key, one in value]


def comparable(value: Any) -> Any:
    """Return a value in which NaN equals itself, and -0.0 not 0.0."""
    if isinstance(value, dict):
        return {name: comparable(one) for name, one in value.items()}
    if isinstance(value, list):
        return [comparable(one) for one in value]
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else repr(value)
    return value
