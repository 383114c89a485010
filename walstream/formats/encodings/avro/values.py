"""Functions that read Avro's types as values of JSON, as Connect's converter has them.

Bytes are base64, and so are decimals; what is not a number is a text; a `float` has the
fewest digits that mean it.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from walstream.formats.encodings import json_value
from walstream.formats.encodings.avro.data import AvroData
from walstream.formats.encodings.json_value import base64

Read = Callable[[AvroData], Any]
int64: Final[Read] = AvroData.long
text: Final[Read] = AvroData.text


def null(_: AvroData) -> None:
    """Read nothing."""


def boolean(data: AvroData) -> bool:
    """Read a boolean."""
    byte = data.byte()
    if byte > 1:
        raise data.refused("not a boolean, before it,")
    return byte == 1


def integer(bits: int) -> Read:
    """Return what reads an integer of a sign and so many bits."""

    def read(data: AvroData) -> int:
        number = data.long()
        if (number if number >= 0 else ~number) >> bits:
            raise data.refused(f"a number of more than {bits + 1} bits, before it,")
        return number

    return read


def raw(data: AvroData) -> str:
    """Read bytes."""
    return base64(data.raw())


def fixed(size: int) -> Read:
    """Return what reads so many bytes."""
    return lambda data: base64(data.take(size))


def double(data: AvroData) -> float | str:
    """Read a double."""
    return json_value.double(data.double())


def single(data: AvroData) -> float | str:
    """Read a float."""
    return json_value.single(data.single())


def enum(symbols: Sequence[str]) -> Read:
    """Return what reads one of these."""

    def read(data: AvroData) -> str:
        number = data.long()
        if not 0 <= number < len(symbols):
            raise data.refused("no such symbol, before it,")
        return symbols[number]

    return read


def optional(value: Read, *, null_first: bool) -> Read:
    """Return what reads a value or null."""
    of_null, of_value = (0, 1) if null_first else (1, 0)

    def read(data: AvroData) -> Any:
        branch = data.long()
        if branch == of_null:
            return None
        if branch != of_value:
            raise data.refused("no such branch, before it,")
        return value(data)

    return read


def union(names: Sequence[str | None], reads: Sequence[Read]) -> Read:
    """Return what reads one of several types: a struct with that one; None is null."""
    all_null = dict.fromkeys(name for name in names if name is not None)

    def read(data: AvroData) -> dict[str, Any] | None:
        branch = data.long()
        if not 0 <= branch < len(reads):
            raise data.refused("no such branch, before it,")
        name, value = names[branch], reads[branch](data)
        return None if name is None else {**all_null, name: value}

    return read


def record(fields: Sequence[tuple[str, Read]]) -> Read:
    """Return what reads a record's fields."""

    def read(data: AvroData) -> dict[str, Any]:
        data.enter()
        found = {name: value(data) for name, value in fields}
        data.leave()
        return found

    return read


def array(item: Read) -> Read:
    """Return what reads an array's items."""

    def read(data: AvroData) -> list[Any]:
        data.enter()
        found: list[Any] = []
        while count := data.count():
            found += [item(data) for _ in range(count)]
        data.leave()
        return found

    return read


def mapping(key: Read, value: Read) -> Read:
    """Return what reads pairs as an object."""

    def read(data: AvroData) -> dict[str, Any]:
        data.enter()
        found: dict[str, Any] = {}
        while count := data.count():
            for _ in range(count):
                name = key(data)
                found[name] = value(data)
        data.leave()
        return found

    return read


def pairs(key: Read, value: Read) -> Read:
    """Return what reads pairs as a list of them."""
    return array(lambda data: [key(data), value(data)])
