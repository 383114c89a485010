"""What protobuf's own library reads, and what JSON means in its words."""

import importlib
import struct
import tempfile
from base64 import b64decode
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from tests.support.oracles.avro_values import comparable
from walstream.formats.debezium.connect import Schema

_DECIMALS = {"Decimal", "VariableScaleDecimal"}


@lru_cache(None)
def message_class(text: str, name: str = "") -> Any:
    """Return Google's class of the first message of a text, or of another one."""
    protoc = pytest.importorskip("grpc_tools.protoc", reason="needs grpcio-tools")
    pool_of = importlib.import_module("google.protobuf.descriptor_pool")
    files = importlib.import_module("google.protobuf.descriptor_pb2")
    classes = importlib.import_module("google.protobuf.message_factory")
    with tempfile.TemporaryDirectory() as folder:
        path, made = Path(folder) / "a.proto", Path(folder) / "a.set"
        path.write_text(text, "utf-8")
        told = ["protoc", f"-I{folder}", f"--descriptor_set_out={made}", str(path)]
        assert protoc.main(told) == 0, text
        (file,) = files.FileDescriptorSet.FromString(made.read_bytes()).file
    pool = pool_of.DescriptorPool()
    pool.Add(file)
    name = name or file.message_type[0].name
    full = f"{file.package}.{name}" if file.package else name
    return classes.GetMessageClass(pool.FindMessageTypeByName(full))


def plain(message: Any) -> Any:
    """Return what a message says to who knows how walstream writes arrays."""
    name = message.DESCRIPTOR.name
    if name.startswith("ArrayOf"):
        items = [_plain(one) for one in message.items]
        for place in message.nulls:
            items[place] = None
        return items
    found = {}
    for field in message.DESCRIPTOR.fields:
        there = not field.has_presence or message.HasField(field.name)
        found[field.name] = _plain(getattr(message, field.name)) if there else None
    return found


def _plain(value: Any) -> Any:
    return plain(value) if hasattr(value, "DESCRIPTOR") else value


def read(schema: Schema, text: str, data: bytes) -> Any:
    """Read a message as a stranger does; its bytes must be those that Google writes."""
    message = message_class(text).FromString(data)
    assert message.SerializeToString(deterministic=True) == data
    return comparable(told(schema, message))


def told(schema: Schema, value: Any) -> Any:
    """Return what a value of Google's says, whose schema in Connect this is."""
    if schema.name.rpartition(".")[2] in _DECIMALS:
        return Decimal(value)
    if schema.type == "struct":
        return {name: _field(one, value, name) for name, one in schema.fields}
    if schema.items is not None:
        nulls = {*value.nulls}
        return [
            None if place in nulls else told(schema.items, one)
            for place, one in enumerate(value.items)
        ]
    if schema.keys is not None and schema.values is not None:
        pairs = [
            (told(schema.keys, one.key), _field(schema.values, one, "value"))
            for one in value.entries
        ]
        return dict(pairs) if schema.keys.type == "string" else [*map(list, pairs)]
    return value


def _field(schema: Schema, message: Any, name: str) -> Any:
    field = message.DESCRIPTOR.fields_by_name[name]
    if field.has_presence and not message.HasField(name):
        assert schema.optional, f"{name} is not there"
        return None
    return told(schema, getattr(message, name))


def meant(schema: Schema, value: Any) -> Any:
    """Return what JSON means, as `read` returns it."""
    if value is None:
        return None
    if schema.name.rpartition(".")[2] in _DECIMALS:
        return _decimal(schema, value)
    if schema.type == "struct":
        return {name: meant(one, value[name]) for name, one in schema.fields}
    if schema.items is not None:
        return [meant(schema.items, one) for one in value]
    if schema.keys is not None and schema.values is not None:
        return _map(schema.keys, schema.values, value)
    return _scalar(schema.type, value)


def _decimal(schema: Schema, value: Any) -> Decimal:
    scale = dict(schema.parameters).get("scale", 0)
    if isinstance(value, dict):
        scale, value = value["scale"], value["value"]
    number = int.from_bytes(b64decode(value), "big", signed=True)
    return Decimal(number).scaleb(-int(scale))


def _map(keys: Schema, values: Schema, value: Any) -> Any:
    if keys.type == "string":
        return {name: meant(values, one) for name, one in value.items()}
    return [[key, meant(values, one)] for key, one in value]


def _scalar(kind: str, value: Any) -> Any:
    if kind == "bytes":
        return b64decode(value)
    if kind == "float":
        return struct.unpack("f", struct.pack("f", float(value)))[0]
    return float(value) if kind == "double" else value
