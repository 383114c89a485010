"""The text of an Avro schema -> what reads its data, and Connect's schema of that.

As AvroData of Confluent and Apicurio reads it: attributes `connect.…` say what Avro has
no word for. A type that takes no byte is refused within another: of such ones data has
as many as it likes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, NoReturn

import orjson

from walstream.errors import WalstreamError
from walstream.formats.encodings.avro import values
from walstream.formats.encodings.avro.data import AvroData
from walstream.formats.encodings.avro.values import Read
from walstream.formats.encodings.json_value import base64

Connect = Mapping[str, Any]
"""A schema of Connect, as JsonConverter writes it."""

_KAFKA: Final = "org.apache.kafka.connect.data."
_INT: Final = values.integer(31)
_SCALARS: Final[Mapping[str, tuple[str, Read]]] = {
    "boolean": ("boolean", values.boolean),
    "bytes": ("bytes", values.raw),
    "double": ("double", values.double),
    "float": ("float", values.single),
    "int": ("int32", _INT),
    "long": ("int64", values.int64),
    "string": ("string", values.text),
}
_SMALL: Final[Mapping[str, Read]] = {
    "int8": values.integer(7),
    "int16": values.integer(15),
}
_LOGICAL: Final = {
    ("bytes", "decimal"): f"{_KAFKA}Decimal",
    ("fixed", "decimal"): f"{_KAFKA}Decimal",
    ("int", "date"): f"{_KAFKA}Date",
    ("int", "time-millis"): f"{_KAFKA}Time",
    ("long", "timestamp-millis"): f"{_KAFKA}Timestamp",
}
_PRECISION: Final = 64  # of a Decimal that has none of its own
_SPACE: Final = "io.confluent.connect.avro"
_ENTRY: Final = f"{_SPACE}.MapEntry"
_UNNAMED: Final = f"{_SPACE}.ConnectDefault"
_UNION: Final = f"{_SPACE}.Union"
_DEEPEST: Final = 60  # types within each other
_OTHER_SHAPE: Final = (AttributeError, KeyError, TypeError, ValueError, RecursionError)


class BadSchema(WalstreamError):
    """A text that is not a schema of Avro, or one that Connect has no form for."""


class Node(NamedTuple):
    """A type."""

    read: Read
    schema: dict[str, Any]
    is_empty: bool = False  # takes no byte
    entry: tuple["Node", "Node"] | None = None  # key and value of a map's pair


def parsed(text: str) -> Node:
    """Read a schema's text; raise BadSchema."""
    try:
        return _Types().of(orjson.loads(text), "", 0)
    except _OTHER_SHAPE as error:
        name = type(error).__name__
        raise BadSchema(f"not a schema of Avro: {name}") from None


@dataclass(slots=True)
class _Named:
    """A type that has a name, from its beginning on."""

    node: Node | None = None

    def read(self, data: AvroData) -> Any:
        """Read a value of a type that holds itself."""
        if self.node is None:
            raise data.refused("a type without an end")
        return self.node.read(data)


class _Types:
    """The types of one schema."""

    def __init__(self) -> None:
        self._named: dict[str, _Named] = {}

    def of(self, told: Any, space: str, depth: int) -> Node:
        """Read a type within a namespace."""
        if depth > _DEEPEST:
            _refuse("types within types, too deep")
        if isinstance(told, list):
            return self._union(told, space, depth)
        if isinstance(told, str):
            return self._word(told, space)
        kind = told["type"]
        if not isinstance(kind, str):
            return self.of(kind, space, depth + 1)
        make = _MADE.get(kind)
        if make is not None:
            return make(self, told, space, depth)
        return _scalar(kind, told) if kind in _SCALARS else self._word(kind, space)

    def _word(self, word: str, space: str) -> Node:
        if word in _SCALARS:
            return _scalar(word, {})
        if word == "null":
            return _NULL
        known = self._named.get(_full(word, space)) or self._named.get(word)
        if known is None:
            _refuse(f"it does not say what {word!r} is")
        if known.node is None:  # it holds itself
            return Node(known.read, {"type": "struct", "optional": False})
        return known.node

    def _filled(self, told: Any, space: str, depth: int) -> Node:
        """Read a type within another."""
        node = self.of(told, space, depth + 1)
        if node.is_empty:
            _refuse("a type within another takes no byte")
        return node

    def _union(self, told: list[Any], space: str, depth: int) -> Node:
        nodes = [self.of(one, space, depth + 1) for one in told]
        nulls = sum(node is _NULL for node in nodes)
        if len(nodes) == 2 and nulls == 1:  # noqa: PLR2004 - a value or null
            null_first = nodes[0] is _NULL
            node = nodes[null_first]
            read = values.optional(node.read, null_first=null_first)
            return Node(read, {**node.schema, "optional": True})
        names = [
            None if node is _NULL else _branch(one)
            for one, node in zip(told, nodes, strict=True)
        ]
        if len(set(names)) < len(names) or not names:
            _refuse("a union of types that are the same")
        fields = [
            {**node.schema, "optional": True, "field": name}
            for name, node in zip(names, nodes, strict=True)
            if name is not None
        ]
        schema = {"type": "struct", "fields": fields, "name": _UNION}
        read = values.union(names, [node.read for node in nodes])
        return Node(read, {**schema, "optional": nulls > 0})

    def _record(self, told: Connect, space: str, depth: int) -> Node:
        full, within = self._begun(told, space)
        named = self._named[full]
        fields: list[tuple[str, Node]] = []
        for field in told["fields"]:
            node = self._filled(field["type"], within, depth)
            fields.append((str(field["name"]), _with_default(node, field)))
        names = [name for name, _ in fields]
        if len(set(names)) < len(names):
            _refuse("a record with two fields of one name")
        schema: dict[str, Any] = {
            "type": "struct",
            "fields": [{**node.schema, "field": name} for name, node in fields],
            "optional": False,
        }
        _add_told(schema, told, "" if full == _UNNAMED else full)
        read = values.record([(name, node.read) for name, node in fields])
        entry = None
        if _is_entry(told, full) and names == ["key", "value"]:
            entry = fields[0][1], fields[1][1]
        named.node = Node(read, schema, not fields, entry)
        return named.node

    def _enum(self, told: Connect, space: str, _: int) -> Node:
        full, _within = self._begun(told, space)
        read = values.enum([str(one) for one in told["symbols"]])
        node = Node(read, _told({"type": "string", "optional": False}, told))
        self._named[full].node = node
        return node

    def _fixed(self, told: Connect, space: str, _: int) -> Node:
        full, _within = self._begun(told, space)
        size = told["size"]
        if not (isinstance(size, int) and size >= 0):
            _refuse("bytes of no length")
        schema = _told({"type": "bytes", "optional": False}, told)
        _add_logical(schema, "fixed", told)
        node = Node(values.fixed(size), schema, size == 0)
        self._named[full].node = node
        return node

    def _array(self, told: Connect, space: str, depth: int) -> Node:
        node = self._filled(told["items"], space, depth)
        if node.entry is not None:
            return _map(told, *node.entry, as_pairs=True)
        schema = {"type": "array", "items": node.schema, "optional": False}
        return Node(values.array(node.read), _told(schema, told))

    def _map(self, told: Connect, space: str, depth: int) -> Node:
        return _map(told, _TEXT, self._filled(told["values"], space, depth))

    def _begun(self, told: Connect, space: str) -> tuple[str, str]:
        """Note a type's name; return it, and the namespace within it."""
        name = str(told["name"])
        full = name if "." in name else _full(name, str(told.get("namespace", space)))
        if full in self._named:
            _refuse(f"it says twice what {full!r} is")
        self._named[full] = _Named()
        return full, full.rpartition(".")[0]


def _map(told: Connect, key: Node, value: Node, *, as_pairs: bool = False) -> Node:
    schema = {
        "type": "map",
        "keys": key.schema,
        "values": value.schema,
        "optional": False,
    }
    # JSON has names for texts alone
    named = key.schema["type"] == "string" and not key.schema["optional"]
    made = values.pairs if as_pairs and not named else values.mapping
    return Node(made(key.read, value.read), _told(schema, told))


def _scalar(kind: str, told: Connect) -> Node:
    name, read = _SCALARS[kind]
    small = str(told.get("connect.type"))
    if kind == "int" and small in _SMALL:
        name, read = small, _SMALL[small]
    schema = _told({"type": name, "optional": False}, told)
    _add_logical(schema, kind, told)
    return Node(read, schema)


def _told(schema: dict[str, Any], told: Connect) -> dict[str, Any]:
    _add_told(schema, told)
    return schema


def _add_told(schema: dict[str, Any], told: Connect, name: str = "") -> None:
    """Add what Connect says of a type; its own name counts for more than Avro's."""
    parameters = told.get("connect.parameters")
    if parameters:
        schema["parameters"] = {str(key): str(one) for key, one in parameters.items()}
    for key in ("version", "doc"):
        if told.get(f"connect.{key}"):
            schema[key] = told[f"connect.{key}"]
    if told.get("connect.name") or name:
        schema["name"] = str(told.get("connect.name") or name)
    _add_default(schema, told.get("connect.default"))


def _add_logical(schema: dict[str, Any], kind: str, told: Connect) -> None:
    """Add the name of a type that Avro has a word for, too."""
    name = _LOGICAL.get((kind, str(told.get("logicalType"))))
    if name is None:
        return
    schema.setdefault("name", name)
    schema.setdefault("version", 1)
    if name.endswith("Decimal"):
        parameters = schema.setdefault("parameters", {})
        parameters.setdefault("scale", str(told.get("scale", 0)))
        precision = told.get("precision", _PRECISION)
        if precision != _PRECISION:
            parameters.setdefault("connect.decimal.precision", str(precision))


def _with_default(node: Node, field: Connect) -> Node:
    """Return a field's type with the field's default, unless it has one of its own."""
    default = field.get("default")
    if default is None or "default" in node.schema:
        return node
    schema = dict(node.schema)
    _add_default(schema, default)
    return node._replace(schema=schema)


def _add_default(schema: dict[str, Any], default: Any) -> None:
    """Add a default; of bytes Avro has the characters of Latin-1."""
    if default is None:
        return
    if schema["type"] == "bytes":
        default = base64(default.encode("latin-1"))
    schema["default"] = default


def _branch(told: Any) -> str:
    """Name a union's branch as Connect names its field."""
    word = told if isinstance(told, str) else told["type"]
    if isinstance(told, dict) and word in {"record", "error", "enum", "fixed"}:
        word = told["name"]
    return str(word).rpartition(".")[2]


def _is_entry(told: Connect, full: str) -> bool:
    return full == _ENTRY or told.get("connect.internal.type") == "MapEntry"


def _full(name: str, space: str) -> str:
    return f"{space}.{name}" if space and "." not in name else name


def _refuse(reason: str) -> NoReturn:
    raise BadSchema(f"not a schema of Avro that can be read: {reason}")


_Make = Callable[[_Types, Connect, str, int], Node]
_MADE: Final[Mapping[str, _Make]] = {
    "array": _Types._array,  # noqa: SLF001 - its own dispatch
    "enum": _Types._enum,  # noqa: SLF001
    "error": _Types._record,  # noqa: SLF001
    "fixed": _Types._fixed,  # noqa: SLF001
    "map": _Types._map,  # noqa: SLF001
    "record": _Types._record,  # noqa: SLF001
}
_NULL: Final = Node(values.null, {}, is_empty=True)
_TEXT: Final = _scalar("string", {})
