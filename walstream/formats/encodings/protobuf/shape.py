"""A schema of Connect -> messages of proto3, whose fields have no numbers yet.

Names are those that Confluent's ProtobufConverter gives. What proto3 has no form for
has a message of its own: an array, since it or an item of it may be null, and a map,
for the same reason. Decimals are texts of their digits. What Connect says of a type is
a comment: registries and other readers need nothing but the text.
"""

import re
from typing import Final

from walstream.errors import ConfigError
from walstream.formats.debezium.connect import Schema
from walstream.formats.debezium.connect_type import KAFKA, VARIABLE
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
    json_name,
)

DECIMAL: Final = f"{KAFKA}Decimal"

_TYPES: Final = {
    "boolean": "bool",
    "bytes": "bytes",
    "double": "double",
    "float": "float",
    "int16": "int32",
    "int32": "int32",
    "int64": "int64",
    "string": "string",
}
_UNTOLD: Final = frozenset({"allowed"})  # a label more is no other schema
_WORD: Final = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_OTHER: Final = re.compile("[^A-Za-z0-9_]")


def proto_shape(schema: Schema) -> ProtoFile:
    """Return it; raise ConfigError for the name of a field that proto does not allow.

    The same tree has always the same shape.
    """
    package, _, name = schema.name.rpartition(".")
    parts = [_word(part) for part in package.split(".")] if package else []
    return ProtoFile(".".join(parts), (_message(schema, _word(name), ""),))


def is_decimal(schema: Schema) -> bool:
    """Return whether values are numbers of as many digits as they like."""
    return schema.name in {DECIMAL, VARIABLE.name}


def _word(name: str) -> str:
    """Return a name that a message, or a part of a package, may have."""
    found = _OTHER.sub("_", name)
    return found if _WORD.fullmatch(found) else f"_{found}"


def _message(schema: Schema, name: str, says: str) -> ProtoMessage:
    names = [_field_name(field) for field, _ in schema.fields]
    _check_json_names(names)
    types = _Types(frozenset(names))
    fields = [
        ProtoField(
            field,
            types.of(told),
            "optional" if told.optional else "",
            says=_says(told),
        )
        for field, told in schema.fields
    ]
    return ProtoMessage(name, tuple(fields), tuple(types.made.values()), says=says)


class _Types:
    """The messages that are declared within one."""

    def __init__(self, taken: frozenset[str]) -> None:
        """`taken` are the names of its fields, which share their space."""
        self._taken = taken
        self.made: dict[str, ProtoMessage] = {}

    def of(self, schema: Schema) -> str:
        """Return the name of a type; declare it, if it has to be."""
        if is_decimal(schema):
            return "string"
        if schema.type == "struct":
            return self._declared(schema.name.rpartition(".")[2], schema)
        if schema.items is not None:
            return self._declared(ARRAY + _title(schema.items), schema)
        if schema.keys is not None and schema.values is not None:
            name = f"{MAP}{_title(schema.keys)}To{_title(schema.values)}"
            return self._declared(name, schema)
        return _TYPES[schema.type]

    def _declared(self, proposed: str, schema: Schema) -> str:
        name = _word(proposed)
        while True:
            while name in self._taken:
                name += "Message"  # as Confluent's converter has it
            made = self._made(schema, name)
            if self.made.setdefault(name, made) == made:
                return name
            name += "_"  # two types of one name

    def _made(self, schema: Schema, name: str) -> ProtoMessage:
        if schema.type == "struct":
            return _message(schema, name, schema.name)
        if schema.items is not None:
            within = _Types(frozenset({ITEMS, NULLS}))
            items = ProtoField(ITEMS, within.of(schema.items), "repeated")
            nulls = ProtoField(NULLS, "int32", "repeated")
            return ProtoMessage(name, (items, nulls), tuple(within.made.values()))
        return _map(schema, name)


def _map(schema: Schema, name: str) -> ProtoMessage:
    within = _Types(frozenset({KEY, VALUE}))
    fields = tuple(
        ProtoField(field, within.of(told), "optional" if told.optional else "")
        for field, told in ((KEY, schema.keys), (VALUE, schema.values))
        if told is not None
    )
    entry = ProtoMessage(ENTRY, fields, tuple(within.made.values()))
    return ProtoMessage(name, (ProtoField(ENTRIES, ENTRY, "repeated"),), (entry,))


def _title(schema: Schema) -> str:
    """Return a type's name as a part of another's."""
    if is_decimal(schema):
        return "Decimal"
    if schema.items is not None:
        return ARRAY + _title(schema.items)
    if schema.keys is not None:
        return "Map"
    name = schema.name.rpartition(".")[2] if schema.type == "struct" else ""
    return _word(name) if name else _TYPES[schema.type].capitalize()


def _says(schema: Schema) -> str:
    if schema.items is not None and not schema.name:
        inner = _says(schema.items)
        return OF_ITEMS + inner if inner else ""
    told = " ".join(
        f"{name}={value}" for name, value in schema.parameters if name not in _UNTOLD
    )
    if schema.type == "struct" and told:
        return told  # the name is the message's
    if schema.type == "struct" or not schema.name:
        return "decimal" if is_decimal(schema) else ""
    if is_decimal(schema):
        shown = told.replace("connect.decimal.", "")
        return f"decimal {shown}".strip()
    return f"{schema.name} {told}".strip()


def _field_name(name: str) -> str:
    if _WORD.fullmatch(name) is None:
        raise ConfigError(
            f"the field {name!r} has a name that protobuf does not allow",
            hint='set adjust_fields = "avro", or rename the column',
        )
    return name


def _check_json_names(names: list[str]) -> None:
    """Raise ConfigError for what protobuf's compiler refuses: JSON's names are one."""
    known: dict[str, str] = {}
    for name in names:
        other = known.setdefault(json_name(name), name)
        if other != name:
            raise ConfigError(
                f"the fields {other!r} and {name!r} have the same name in the JSON "
                f"that protobuf makes: {json_name(name)!r}",
                hint="rename one with the handler rename_columns",
            )
