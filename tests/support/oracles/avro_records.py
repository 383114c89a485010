"""Records in Avro as trees, read by fastavro with the schemas of a registry.

What a tree does not tell is compared all the same: each record has to be the bytes that
fastavro makes of what it read, so that two with the same tree and schema are the same
bytes; and each schema is told with its id, which is one for one text.
"""

import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Final, Self

import fastavro
from confluent_kafka.schema_registry import SchemaRegistryClient

from tests.support.oracles.json_difference import Node

_HEAD: Final = 5  # bytes of a magic byte and a schema's id
_CONNECT: Final = "connect."


def without_logical_types(schema: Any) -> Any:
    """Return a schema whose bytes stay bytes: a decimal's scale may be negative."""
    if isinstance(schema, list):
        return [without_logical_types(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: without_logical_types(one)
        for name, one in schema.items()
        if name != "logicalType"
    }


def schema_tree(schema: Any) -> dict[str, Node]:
    """Return a schema as Connect's would be: fields by name, no unions.

    `null` says before or behind what null stands in a union. Nothing else is lost.
    """
    if isinstance(schema, list):
        assert len(schema) == 2
        assert schema.count("null") == 1
        at = schema.index("null")
        place = json.dumps("behind" if at else "before")
        return {**schema_tree(schema[1 - at]), "null": place}
    if isinstance(schema, str):
        return {"type": json.dumps(schema), "connect": {}}
    found: dict[str, Node] = {}
    connect: dict[str, Node] = {}
    for name, told in schema.items():
        if name == "fields":
            found[name] = dict(map(_field, told))
        elif name in {"items", "values"}:
            found[name] = schema_tree(told)
        elif name.startswith(_CONNECT):
            connect[name.removeprefix(_CONNECT)] = value_tree(told)
        else:
            found[name] = value_tree(told)
    return {**found, "connect": connect}


def _field(told: Mapping[str, Any]) -> tuple[str, Node]:
    others = {name: value_tree(one) for name, one in told.items() if name != "type"}
    return told["name"], {**schema_tree(told["type"]), "field": others}


def value_tree(value: Any) -> Node:
    """Return what fastavro read; scalars as JSON has them, bytes in base64."""
    if isinstance(value, dict):
        return {name: value_tree(one) for name, one in value.items()}
    if isinstance(value, list):
        return [value_tree(one) for one in value]
    if isinstance(value, bytes):
        return json.dumps(b64encode(value).decode())
    return json.dumps(value, ensure_ascii=False)


def schema_id(data: bytes) -> int:
    return int.from_bytes(data[1:_HEAD], "big")


@dataclass(frozen=True)
class _Known:
    parsed: Any
    tree: dict[str, Node]


class AvroTrees:
    """Trees of a topic's records, by the ids in them."""

    def __init__(self, url: str) -> None:
        self._client = SchemaRegistryClient({"url": url, "timeout": 10})
        self._known: dict[int, _Known] = {}

    def tree(self, data: bytes | None) -> Node:
        """Return schema and payload of a key or a value; None of none."""
        if data is None:
            return None
        assert data[:1] == b"\0", data[:20]
        number = schema_id(data)
        known = self._known.get(number) or self._ask(number)
        stream = BytesIO(data[_HEAD:])
        value = fastavro.schemaless_reader(stream, known.parsed, None)
        again = BytesIO()
        fastavro.schemaless_writer(again, known.parsed, value)
        assert again.getvalue() == data[_HEAD:], "other bytes than fastavro's"
        return {"schema": known.tree, "payload": value_tree(value)}

    def registered(self, subject: str) -> set[int]:
        """Return the ids of a subject's versions."""
        asked = self._client
        versions = asked.get_versions(subject)
        return {int(asked.get_version(subject, one).schema_id or 0) for one in versions}

    def _ask(self, number: int) -> _Known:
        text = self._client.get_schema(number).schema_str
        assert text is not None
        schema = json.loads(text)
        parsed = fastavro.parse_schema(without_logical_types(schema))
        found = _Known(parsed, {"id": str(number), **schema_tree(schema)})
        self._known[number] = found
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()
