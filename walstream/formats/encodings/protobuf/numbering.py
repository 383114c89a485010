"""Numbers of fields, taken from the versions of a schema that a registry has: pure.

A field has the number that its name had before. A new name gets the next number that no
version ever had. Those of names that are gone stay reserved, and so do the names, or
stay as fields without a value: see `number`.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import count
from typing import Final

from walstream.errors import HistoryError
from walstream.formats.encodings.protobuf.message import (
    ProtoField,
    ProtoFile,
    ProtoMessage,
    json_name,
)
from walstream.formats.encodings.protobuf.schema_reader import BadProto, parsed_proto

_LARGEST: Final = (1 << 29) - 1
_PROTOBUFS_OWN: Final = range(19000, 20000)
_parsed: Final = lru_cache(1000)(parsed_proto)  # of each shape all versions are read


def number(
    shape: ProtoFile, history: Sequence[ProtoFile], *, keep: bool = False
) -> ProtoFile:
    """Return a shape with numbers; `history` has the latest version last.

    With `keep`, what the latest version has and the shape has not stays there, as
    deprecated: some registries take each field that is gone for incompatible.
    """
    name = shape.first.name
    before = [_first(one, name) for one in history if one.messages]
    return replace(shape, messages=(_message(shape.first, before, keep=keep),))


def number_text(text: str, history: Sequence[str], *, keep: bool) -> str:
    """Return a text with numbers, by those of its versions, the latest last.

    A version that has all fields of it already is taken as it is, unless a later one
    gave its numbers to others. Raises BadProto for a latest one that cannot be read.
    """
    shape = parsed_proto(text, bare=True)
    versions: list[ProtoFile] = []
    for one in reversed(history):
        try:
            version = _parsed(one)
        except BadProto:
            if not versions:
                raise
            continue  # numbers of before are reserved in those that follow
        if covers(version, shape) and not _is_outdated(version, versions):
            return one
        versions.insert(0, version)
    return number(shape, versions, keep=keep).text()


def covers(version: ProtoFile, shape: ProtoFile) -> bool:
    """Return whether records of a shape can be written by a version of it."""
    if not version.messages or version.package != shape.package:
        return False
    return version.first.name == shape.first.name and _covers(
        version.first, shape.first
    )


def _is_outdated(version: ProtoFile, later: Sequence[ProtoFile]) -> bool:
    name = version.first.name
    after = [_first(one, name) for one in later if one.messages]
    return _differs(version.first, after)


def _differs(message: ProtoMessage, later: Sequence[ProtoMessage]) -> bool:
    """Return whether a number is another field's by now, or a field has another."""
    names = {field.number: field.name for field in message.fields}
    numbers = {(field.name, field.form): field.number for field in message.fields}
    for one in later:
        for field in one.fields:
            told = field.name, field.form
            if names.get(field.number, field.name) != field.name:
                return True
            if numbers.get(told, field.number) != field.number:
                return True
    return any(_differs(one, _of_name(later, one.name)) for one in message.messages)


def _first(version: ProtoFile, name: str) -> ProtoMessage:
    """Return the message of a version's records; one of that name, if there is one."""
    named = (one for one in version.messages if one.name == name)
    return next(named, version.first)


def _covers(version: ProtoMessage, shape: ProtoMessage) -> bool:
    wanted = [_told(field) for field in shape.fields]
    if [_told(field) for field in version.fields if not field.gone] != wanted:
        return False
    for one in shape.messages:
        found = version.message(one.name)
        if found is None or not _covers(found, one):
            return False
    return True


def _told(field: ProtoField) -> ProtoField:
    return replace(field, number=0)


def _message(
    shape: ProtoMessage, history: Sequence[ProtoMessage], *, keep: bool
) -> ProtoMessage:
    latest = history[-1] if history else ProtoMessage(shape.name)
    numbers = _Numbers(history, shape)
    wanted = {field.name for field in shape.fields}
    fields = [replace(field, number=numbers.of(field)) for field in shape.fields]
    if keep:
        shown = {json_name(name) for name in wanted}
        fields += [
            replace(field, gone=True)
            for field in latest.fields
            if json_name(field.name) not in shown and numbers.take(field.number)
        ]
    declared = {one.name for one in shape.messages} | wanted
    return replace(
        shape,
        fields=tuple(fields),
        messages=(
            *(
                _message(one, _of_name(history, one.name), keep=keep)
                for one in shape.messages
            ),
            # one that is gone is not compatible, whether it is used or not
            *(one for one in latest.messages if one.name not in declared),
        ),
        reserved=numbers.reserved(),
        reserved_names=_reserved_names(history, {field.name for field in fields}),
    )


class _Numbers:
    """Numbers that a message had."""

    def __init__(self, history: Sequence[ProtoMessage], shape: ProtoMessage) -> None:
        self._names: dict[int, str] = {}  # whose it was last
        self._before: dict[str, list[ProtoField]] = {}  # the latest first
        self._ranges = {one for message in history for one in message.reserved}
        for message in history:
            for field in message.fields:
                self._names[field.number] = field.name
                self._before.setdefault(field.name, []).insert(0, field)
        self._latest = history[-1].live if history else {}
        self._given: set[int] = set()
        largest = max(self._names, default=0)
        ends = (last for _, last in self._ranges if last < _LARGEST)
        self._next = count(max(largest, *ends, 0) + 1)
        # those that stay have theirs before another takes a number
        self._staying = {
            field.name: found.number
            for field in shape.fields
            if (found := self._latest.get(field.name)) is not None
        }
        self._given.update(self._staying.values())

    def of(self, field: ProtoField) -> int:
        """Return the number of a field."""
        if field.name in self._staying:
            return self._staying[field.name]
        for one in self._before.get(field.name, ()):
            is_own = self._names[one.number] == field.name and one.form == field.form
            if is_own and self.take(one.number):
                return one.number
        return next(one for one in self._next if self._is_new(one))

    def take(self, number: int) -> bool:
        """Take a number; False: another field has it."""
        if number in self._given:
            return False
        self._given.add(number)
        return True

    def _is_new(self, number: int) -> bool:
        if number > _LARGEST:
            raise HistoryError(
                "a table had more columns than protobuf has numbers for",
                hint="let its records have another subject, of a topic of their own",
            )
        if number in _PROTOBUFS_OWN or self._is_reserved(number):
            return False
        return self.take(number)

    def _is_reserved(self, number: int) -> bool:
        return any(first <= number <= last for first, last in self._ranges)

    def reserved(self) -> tuple[tuple[int, int], ...]:
        """Return the numbers that no field has any longer, as few ranges."""
        every = {(one, one) for one in self._names} | self._ranges
        found: list[tuple[int, int]] = []
        for first, last in sorted(every):
            for one in self._without_given(first, last):
                if found and one[0] <= found[-1][1] + 1:
                    found[-1] = found[-1][0], max(found[-1][1], one[1])
                else:
                    found.append(one)
        return tuple(found)

    def _without_given(self, first: int, last: int) -> list[tuple[int, int]]:
        parts = []
        for one in sorted(self._given):
            if first <= one <= last:
                if first < one:
                    parts.append((first, one - 1))
                first = one + 1
        return [*parts, (first, last)] if first <= last else parts


def _reserved_names(
    history: Sequence[ProtoMessage], present: set[str]
) -> tuple[str, ...]:
    names = dict.fromkeys(
        name
        for message in history
        for name in (*message.reserved_names, *(field.name for field in message.fields))
    )
    return tuple(name for name in names if name not in present)


def _of_name(history: Sequence[ProtoMessage], name: str) -> list[ProtoMessage]:
    found = (message.message(name) for message in history)
    return [one for one in found if one is not None]
