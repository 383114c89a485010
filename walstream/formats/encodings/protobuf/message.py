"""Messages of proto3 as a tree: what a schema's text says, with or without numbers."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

SCALARS: Final = frozenset(
    {
        *("bool", "bytes", "double", "fixed32", "fixed64", "float", "int32", "int64"),
        *("sfixed32", "sfixed64", "sint32", "sint64", "string", "uint32", "uint64"),
    }
)


@dataclass(frozen=True, slots=True)
class ProtoField:
    """One field of a message."""

    name: str
    type: str  # a word of SCALARS, or a message's name
    label: str = ""  # "optional", "repeated" or none
    number: int = 0  # 0: it has none yet
    says: str = ""  # what Connect says of the type, in a comment
    gone: bool = False  # of a column that the table no longer has

    @property
    def form(self) -> tuple[str, str]:
        """What readers need to be the same: the type, and whether there are many."""
        return self.type, "repeated" if self.label == "repeated" else ""


@dataclass(frozen=True, slots=True)
class ProtoMessage:
    """A message, with those that are declared within it."""

    name: str
    fields: tuple[ProtoField, ...] = ()
    messages: "tuple[ProtoMessage, ...]" = ()
    reserved: tuple[tuple[int, int], ...] = ()  # from and to: both are reserved
    reserved_names: tuple[str, ...] = ()
    says: str = ""
    enums: tuple[tuple[str, tuple[tuple[int, str], ...]], ...] = ()  # of others' texts

    @property
    def live(self) -> dict[str, ProtoField]:
        """Its fields by name, but for those that are gone."""
        return {field.name: field for field in self.fields if not field.gone}

    def message(self, name: str) -> "ProtoMessage | None":
        """Return one that is declared within it."""
        return next((one for one in self.messages if one.name == name), None)


@dataclass(frozen=True, slots=True)
class ProtoFile:
    """A schema: the first message is that of the records."""

    package: str
    messages: tuple[ProtoMessage, ...]
    enums: tuple[tuple[str, tuple[tuple[int, str], ...]], ...] = ()

    @property
    def first(self) -> ProtoMessage:
        """The message of a record."""
        return self.messages[0]

    @property
    def name(self) -> str:
        """The full name of that."""
        name = self.first.name
        return f"{self.package}.{name}" if self.package else name

    def text(self) -> str:
        """Write it; fields that have no number yet have none there."""
        lines = ['syntax = "proto3";']
        if self.package:
            lines.append(f"package {self.package};")
        for message in self.messages:
            lines.append("")
            lines += _lines(message, "")
        return "\n".join([*lines, ""])


def _lines(message: ProtoMessage, indent: str) -> Iterator[str]:
    if message.says:
        yield f"{indent}// {message.says}"
    yield f"{indent}message {message.name} {{"
    inner = f"{indent}  "
    if message.reserved:
        shown = ", ".join(
            str(first) if first == last else f"{first} to {last}"
            for first, last in message.reserved
        )
        yield f"{inner}reserved {shown};"
    if message.reserved_names:
        names = ", ".join(f'"{name}"' for name in message.reserved_names)
        yield f"{inner}reserved {names};"
    for field in message.fields:
        if field.says:
            yield f"{inner}// {field.says}"
        label = f"{field.label} " if field.label else ""
        number = f" = {field.number}" if field.number else ""
        yield f"{inner}{label}{field.type} {field.name}{number}{_options(field)};"
    for one in message.messages:
        yield ""
        yield from _lines(one, inner)
    yield f"{indent}}}"


def _options(field: ProtoField) -> str:
    return " [deprecated = true]" if field.gone else ""


def json_name(name: str) -> str:
    """Return the name in JSON that protobuf makes of a field's."""
    first, *others = name.split("_")
    return first + "".join(one[:1].upper() + one[1:] for one in others)
