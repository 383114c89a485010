"""Messages of a schema -> what reads their data, and Connect's schemas of them."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from walstream.formats.encodings.protobuf.data import ProtoData
from walstream.formats.encodings.protobuf.forms import (
    ARRAY,
    ENTRIES,
    ENTRY,
    ITEMS,
    KEY,
    MAP,
    NULLS,
    OF_ITEMS,
    VALUE,
)
from walstream.formats.encodings.protobuf.message import (
    ProtoField,
    ProtoFile,
    ProtoMessage,
)
from walstream.formats.encodings.protobuf.primitive import LENGTH, VARINT
from walstream.formats.encodings.protobuf.schema_reader import BadProto
from walstream.formats.encodings.protobuf.values import KNOWN, SCALARS, Convert

Connect = dict[str, Any]
_DEEPEST: Final = 60  # messages within each other
_MESSAGES: Final = frozenset({"array", "map", "struct"})
_OURS: Final = "walstream."  # how a parameter of a message of its own begins
_SAID: Final = re.compile(r"((?:io\.debezium|org\.apache\.kafka)\.\S+)((?: \S+=\S+)*)")


class _Kind(NamedTuple):
    """A type of a field."""

    schema: Connect
    wire: int
    convert: Convert
    default: Any = None  # None: it may lack
    is_entry: bool = False  # a pair of a map


class _Slot(NamedTuple):
    """A field."""

    name: str
    kind: _Kind
    repeated: bool
    default: Any


class MessageReader:
    """Reads the data of one message."""

    def __init__(self, name: str, depth: int) -> None:
        self.name = name
        self.depth = depth
        self.schema: Connect = {"type": "struct", "optional": False, "fields": []}
        self.slots: dict[int, _Slot] = {}
        self.finish: Callable[[dict[str, Any]], Any] = _itself

    def read(self, value: bytes, start: int = 0) -> Any:
        """Read all of it."""
        data = ProtoData(value, start)
        found: dict[int, Any] = {}
        while data.more:
            number, wire = data.tag()
            if number == 0:
                raise data.refused("a field without a number, before it,")
            value_of = data.value(wire)
            slot = self.slots.get(number)
            if slot is not None:
                _collect(found, number, slot, data, (wire, value_of))
        return self.finish(
            {
                slot.name: _taken(slot, found[number])
                if number in found
                else _default(slot)
                for number, slot in self.slots.items()
            }
        )


def _itself(found: dict[str, Any]) -> Any:
    return found


def _collect(
    found: dict[int, Any],
    number: int,
    slot: _Slot,
    data: ProtoData,
    told: tuple[int, int | bytes],
) -> None:
    wire, value = told
    if wire == slot.kind.wire:
        if slot.repeated:
            found.setdefault(number, []).append(value)
        elif wire == LENGTH and slot.default is None and number in found:
            found[number] = _merged(slot, found[number], value)
        else:
            found[number] = value
    elif slot.repeated and wire == LENGTH and isinstance(value, bytes):
        packed = ProtoData(value)
        items = found.setdefault(number, [])
        while packed.more:
            items.append(packed.value(slot.kind.wire))
    else:
        raise data.refused(f"field {number} is of another type, before it,")


def _merged(slot: _Slot, before: Any, value: Any) -> Any:
    """Return a message that has two parts; of other types the last counts."""
    return before + value if slot.kind.schema["type"] in _MESSAGES else value


def _taken(slot: _Slot, value: Any) -> Any:
    convert = slot.kind.convert
    if not slot.repeated:
        return convert(value)
    items = [convert(one) for one in value]
    return _as_map(slot.kind, items) if slot.kind.is_entry else items


def _default(slot: _Slot) -> Any:
    if not slot.repeated:
        return slot.default
    return _as_map(slot.kind, []) if slot.kind.is_entry else []


def _as_map(kind: _Kind, entries: list[dict[str, Any]]) -> Any:
    key = {one["field"]: one for one in kind.schema["fields"]}[KEY]
    if key["type"] == "string" and not key["optional"]:
        return {one[KEY]: one[VALUE] for one in entries}
    return [[one[KEY], one[VALUE]] for one in entries]


class MessageReaders:
    """Those of one schema, made as they are met."""

    def __init__(self, file: ProtoFile) -> None:
        self._file = file
        self._messages: dict[str, ProtoMessage] = {}
        self._enums: dict[str, dict[int, str]] = {}
        for message in file.messages:
            self._index(message, file.package, 0)
        for name, values in file.enums:
            self._enums[_within(file.package, name)] = dict(values)
        self._made: dict[str, MessageReader] = {}

    def _index(self, message: ProtoMessage, space: str, depth: int) -> None:
        full = _within(space, message.name)
        self._messages[full] = message
        for name, values in message.enums:
            self._enums[_within(full, name)] = dict(values)
        for one in message.messages:
            self._index(one, full, depth + 1)

    def of(self, name: str, depth: int = 0) -> MessageReader:
        """Return the reader of a message, by its full name."""
        known = self._made.get(name)
        if known is not None:
            return known
        if depth > _DEEPEST:
            raise BadProto("a schema of protobuf with messages in messages, too deep")
        message = self._messages[name]
        made = self._made[name] = MessageReader(name, depth)
        for field in message.fields:
            if not field.gone:
                made.slots[field.number] = self._slot(field, name, depth)
        # fields have the order of the text, whatever their numbers are
        made.schema["fields"] = [
            {**_field_schema(slot), "field": slot.name} for slot in made.slots.values()
        ]
        if message.says:
            made.schema["name"] = message.says
        _form(made, message)
        return made

    def _slot(self, field: ProtoField, space: str, depth: int) -> _Slot:
        kind = self._kind(field, space, depth)
        repeated = field.label == "repeated"
        default = None if field.label == "optional" else kind.default
        if field.label == "optional" or kind.default is None:
            kind = kind._replace(schema={**kind.schema, "optional": True})
        return _Slot(field.name, kind, repeated, default)

    def _kind(self, field: ProtoField, space: str, depth: int) -> _Kind:
        scalar = SCALARS.get(field.type)
        if scalar is not None:
            word, wire, convert, default = scalar
            schema = {"type": word, "optional": False, **_said(field.says)}
            return _Kind(schema, wire, convert, default)
        for full in _candidates(field.type, space):
            if full in self._messages:
                return self._message_kind(full, field, depth)
            if full in self._enums:
                return _enum_kind(self._enums[full])
            if full in KNOWN:
                schema, convert = KNOWN[full]
                return _Kind({"optional": False, **schema}, LENGTH, convert)
        raise BadProto(
            f"a schema of protobuf that does not say what {field.type!r} is: of files "
            "that are imported, walstream knows Confluent's and Google's types"
        )

    def _message_kind(self, full: str, field: ProtoField, depth: int) -> _Kind:
        reader = self.of(full, depth + 1)
        schema = dict(reader.schema)
        said = field.says
        if schema["type"] == "array":
            inner = _said(said.removeprefix(OF_ITEMS))
            if said.startswith(OF_ITEMS):
                schema["items"] = {**schema["items"], **inner}
            else:
                schema.update(inner)
        elif said.startswith(_OURS):
            schema.update(_said(said))
        fields = [one["field"] for one in schema.get("fields", ())]
        # as Connect's converter finds maps
        is_entry = full.endswith(ENTRY) and fields == [KEY, VALUE]
        return _Kind(schema, LENGTH, reader.read, None, is_entry)


def _field_schema(slot: _Slot) -> Connect:
    schema = slot.kind.schema
    if not slot.repeated:
        return schema
    if slot.kind.is_entry:
        of = {one["field"]: one for one in schema["fields"]}
        return {"type": "map", "keys": of[KEY], "values": of[VALUE], "optional": False}
    return {"type": "array", "items": schema, "optional": False}


def _form(made: MessageReader, message: ProtoMessage) -> None:
    """Let a message that walstream makes of an array, or of a map, be that."""
    fields = message.live
    schemas = {one["field"]: one for one in made.schema["fields"]}
    if message.name.startswith(ARRAY) and [*fields] == [ITEMS, NULLS]:
        items = {k: v for k, v in schemas[ITEMS]["items"].items() if k != "field"}
        made.schema = {
            "type": "array",
            "items": {**items, "optional": True},
            "optional": False,
        }
        made.finish = _array
    elif (
        message.name.startswith(MAP)
        and [*fields] == [ENTRIES]
        and schemas[ENTRIES]["type"] == "map"
    ):
        made.schema = {k: v for k, v in schemas[ENTRIES].items() if k != "field"}
        made.finish = _only_entries


def _array(found: dict[str, Any]) -> Any:
    items = found[ITEMS]
    for place in found[NULLS]:
        if 0 <= place < len(items):
            items[place] = None
    return items


def _only_entries(found: dict[str, Any]) -> Any:
    return found[ENTRIES]


def _enum_kind(values: Mapping[int, str]) -> _Kind:
    def convert(value: int) -> Any:
        number = SCALARS["int32"][2](value)
        return values.get(number, str(number))

    schema = {"type": "string", "optional": False}
    return _Kind(schema, VARINT, convert, values.get(0, "0"))


def _said(comment: str) -> Connect:
    """Return what Connect says of a type, as walstream writes it."""
    if comment.startswith(_OURS):
        name, _, value = comment.partition("=")
        return {"parameters": {name: value}}
    found = _SAID.fullmatch(comment)
    if found is None:
        return {}
    told: Connect = {"name": found[1], "version": 1}
    if found[2]:
        pairs = (one.partition("=") for one in found[2].split())
        told["parameters"] = {name: value for name, _, value in pairs}
    return told


def _candidates(name: str, space: str) -> Iterator[str]:
    """Yield full names that a type's may stand for, the innermost first."""
    if name.startswith("."):
        yield name[1:]
        return
    while space:
        yield f"{space}.{name}"
        space = space.rpartition(".")[0]
    yield name


def _within(space: str, name: str) -> str:
    return f"{space}.{name}" if space else name
