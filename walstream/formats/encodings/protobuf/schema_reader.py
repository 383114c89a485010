"""The text of a proto file -> its messages: proto3, and what is known of others.

Of walstream's texts, of those of Confluent's ProtobufConverter, and of what people
write for such records: no services are read, no groups and no extensions.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NoReturn

from walstream.errors import WalstreamError
from walstream.formats.encodings.protobuf.message import (
    ProtoField,
    ProtoFile,
    ProtoMessage,
)

_TOKEN: Final = re.compile(
    r"""\s+|//(?P<line>[^\n]*)|/\*(?P<block>.*?)\*/"""
    r"""|(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')"""
    r"""|(?P<word>\.?[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*)"""
    r"""|(?P<number>[0-9][0-9A-Za-z.+-]*)|(?P<sign>[]{}[<>();,=:+-])""",
    re.DOTALL,
)
_DEEPEST: Final = 60
_LARGEST: Final = (1 << 29) - 1
_MOST: Final = 20_000_000  # characters
Enum = tuple[str, tuple[tuple[int, str], ...]]


class BadProto(WalstreamError):
    """A text that is not a schema of protobuf, or one that cannot be read."""


def parsed_proto(text: str, *, bare: bool = False) -> ProtoFile:
    """Read a schema's text; raise BadProto. In a `bare` one, fields have no numbers."""
    if len(text) > _MOST:
        _refuse("it is too long")
    return _Parser(text, bare=bare).file()


class _Parser:
    """Reads one text, part by part."""

    def __init__(self, text: str, *, bare: bool) -> None:
        self._bare = bare
        self._parts = _parts(text)
        self._said = ""  # the comment before the next part
        self._at = ""
        self._next()

    def file(self) -> ProtoFile:
        package = ""
        messages: list[ProtoMessage] = []
        enums: list[Enum] = []
        while self._at:
            said = self._said
            word = self._take()
            if word == "syntax":
                self._expect("=")
                if _unquoted(syntax := self._take()) not in {"proto3", "proto2"}:
                    _refuse(f"its syntax is {syntax}")
                self._expect(";")
            elif word == "package":
                package = self._take()
                self._expect(";")
            elif word in {"import", "option"}:
                self._skip()
            elif word == "message":
                messages.append(self._message(said, 0))
            elif word == "enum":
                enums.append(self._enum())
            elif word != ";":
                _refuse(f"it has {word!r}, which is not read")
        if not messages:
            _refuse("it has no message")
        return ProtoFile(package, tuple(messages), tuple(enums))

    def _message(self, said: str, depth: int) -> ProtoMessage:
        if depth > _DEEPEST:
            _refuse("messages within messages, too deep")
        name = self._name()
        fields: list[ProtoField] = []
        messages: list[ProtoMessage] = []
        enums: list[Enum] = []
        ranges: list[tuple[int, int]] = []
        names: list[str] = []
        self._expect("{")
        while self._at != "}":
            about = self._said
            word = self._take()
            if word == "message" and self._is_word:
                messages.append(self._message(about, depth + 1))
            elif word == "enum" and self._is_word:
                enums.append(self._enum())
            elif word == "oneof" and self._is_word:
                fields += self._oneof()
            elif word == "option":
                self._skip()
            elif word == "reserved" and self._at[:1] in {*"\"'0123456789"}:
                self._reserved(ranges, names)
            elif word == "map" and self._at == "<":
                field, entry = self._map(about)
                fields.append(field)
                messages.append(entry)
            elif word != ";":
                fields.append(self._field(word, about))
        self._expect("}")
        self._check(fields)
        made = ProtoMessage(name, tuple(fields), tuple(messages))
        return replace(
            made,
            reserved=tuple(ranges),
            reserved_names=tuple(names),
            says=said,
            enums=tuple(enums),
        )

    def _field(self, word: str, said: str) -> ProtoField:
        label = ""
        if word in {"optional", "repeated", "required"} and self._is_word:
            label, word = word, self._take()
        name, number = self._name(), self._tag()
        gone = self._is_deprecated()
        label = "" if label == "required" else label
        return ProtoField(name, word, label, number, said, gone)

    def _oneof(self) -> list[ProtoField]:
        """Read fields of which one is there: each may lack."""
        self._name()
        self._expect("{")
        fields = []
        while self._at != "}":
            said = self._said
            word = self._take()
            if word == "option":
                self._skip()
            elif word != ";":
                fields.append(replace(self._field(word, said), label="optional"))
        self._expect("}")
        return fields

    def _map(self, said: str) -> tuple[ProtoField, ProtoMessage]:
        """Read a map: protobuf's own word for many entries of key and value."""
        self._expect("<")
        key = self._take()
        self._expect(",")
        value = self._take()
        self._expect(">")
        name, number = self._name(), self._tag()
        gone = self._is_deprecated()
        entry = "".join(part[:1].upper() + part[1:] for part in name.split("_"))
        pair = ProtoField("key", key, "", 1), ProtoField("value", value, "", 2)
        field = ProtoField(name, f"{entry}Entry", "repeated", number, said, gone)
        return field, ProtoMessage(f"{entry}Entry", pair)

    def _enum(self) -> Enum:
        name = self._name()
        self._expect("{")
        values: list[tuple[int, str]] = []
        while self._at != "}":
            word = self._take()
            if word == "option" or (word == "reserved" and self._at != "="):
                self._skip()
            elif word != ";":
                self._expect("=")
                sign = -1 if self._at == "-" else 1
                if sign < 0:
                    self._take()
                values.append((sign * self._integer(), word))
                self._is_deprecated()
        self._expect("}")
        return name, tuple(values)

    def _reserved(self, ranges: list[tuple[int, int]], names: list[str]) -> None:
        while True:
            if self._at[:1] in {'"', "'"}:
                names.append(_unquoted(self._take()))
            else:
                first = last = self._integer()
                if self._at == "to":
                    self._take()
                    if self._at == "max":
                        self._take()
                        last = _LARGEST
                    else:
                        last = self._integer()
                ranges.append((first, last))
            if self._take_if(";"):
                return
            self._expect(",")

    def _tag(self) -> int:
        if self._bare:
            return 0
        self._expect("=")
        number = self._integer()
        if not 0 < number <= _LARGEST:
            _refuse("a field has a number that none may have")
        return number

    def _is_deprecated(self) -> bool:
        """Read what stands in brackets, up to the end of a field."""
        gone = False
        if self._take_if("["):
            depth, name = 1, ""
            while depth:
                part = self._take()
                if part in {"[", "{"}:
                    depth += 1
                elif part in {"]", "}"}:
                    depth -= 1
                elif part == "=" and depth == 1 and name == "deprecated":
                    gone = self._at == "true"
                name = part
        self._expect(";")
        return gone

    def _skip(self) -> None:
        """Leave out a statement."""
        depth = 0
        while True:
            part = self._take()
            if part == "{":
                depth += 1
            elif part == "}":
                depth -= 1
            elif part == ";" and depth == 0:
                return

    def _check(self, fields: list[ProtoField]) -> None:
        numbers = {field.number for field in fields}
        few = len(numbers) < len(fields) and not self._bare
        if few or len({field.name for field in fields}) < len(fields):
            _refuse("two fields of a message have one name, or one number")

    @property
    def _is_word(self) -> bool:
        return self._at[:1].isalpha() or self._at[:1] in {"_", "."}

    def _name(self) -> str:
        name = self._take()
        if not (name[:1].isalpha() or name[:1] == "_") or "." in name:
            _refuse(f"{name!r} stands where a name is expected")
        return name

    def _integer(self) -> int:
        part = self._take()
        try:
            return int(part, 0)
        except ValueError:
            _refuse(f"{part!r} stands where a number is expected")

    def _take_if(self, wanted: str) -> bool:
        if self._at != wanted:
            return False
        self._next()
        return True

    def _expect(self, wanted: str) -> None:
        found = self._take()
        if found != wanted:
            _refuse(f"{found!r} stands where {wanted!r} is expected")

    def _take(self) -> str:
        part = self._at
        if not part:
            _refuse("it ends too early")
        self._next()
        return part

    def _next(self) -> None:
        self._said, self._at = next(self._parts)


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """Yield tokens, each with the comment right before it; "" is the end."""
    at, said = 0, ""
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            _refuse(f"{text[at]!r} is not a part of a schema")
        at = found.end()
        kind = found.lastgroup
        if kind in {"line", "block"}:
            said = found[kind].strip()
        elif kind is not None:
            yield said, found[kind]
            said = ""
    while True:
        yield "", ""


def _unquoted(part: str) -> str:
    return part[1:-1]


def _refuse(reason: str) -> NoReturn:
    raise BadProto(f"not a schema of protobuf that can be read: {reason}")
