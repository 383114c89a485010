"""Dataclasses as JSON objects: written field by field, read by their annotations.

The other end may be of another version: a field that it does not know is passed over,
and one that it does not send has its default. Anything else that does not fit is a
ValueError. A set is a list in order; the keys of a mapping are texts, also of numbers.
"""

import json
import types
from collections.abc import Callable, Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import (
    Any,
    Final,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

Document = Mapping[str, object]
"""A JSON object, as the standard library reads it."""

LEFT_OUT: Final = types.MappingProxyType({"json": False})
"""Metadata of a field that is neither written nor read."""


def absent_as(value: object) -> Mapping[str, object]:
    """Return metadata of a field whose absence means something else than its default.

    An older version wrote none, and what was so by then is `value`.
    """
    return {"absent": value}


_SCALARS: Final = frozenset({str, int, float, bool, type(None)})
_Read = Callable[[Any], Any]
T = TypeVar("T")


def shallow(record: object) -> dict[str, object]:
    """Return the fields of a dataclass by name, their values as they are."""
    return {
        name: getattr(record, name) for name in _names(cast("Hashable", type(record)))
    }


def document(record: object) -> dict[str, object]:
    """Return a dataclass as JSON has it: dicts, lists and plain values alone."""
    return {name: plain(value) for name, value in shallow(record).items()}


def plain(value: object) -> object:
    """Return any value as JSON has it."""
    if type(value) in _SCALARS:  # most are: a state document may have 100,000
        return value
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if is_dataclass(value):
        return document(value)
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, frozenset):
        return sorted(value)
    return value


def recast(kind: type[T], record: object, **more: object) -> T:
    """Return a dataclass of the fields that it shares with another, and of `more`."""
    names = _names(cast("Hashable", kind))
    found = {k: one for k, one in shallow(record).items() if k in names}
    return kind(**found, **more)


def dumps(value: object) -> str:
    """Return the text of a dataclass, or of a mapping that holds some."""
    return json.dumps(value, default=_fields_or_items)


def read(kind: type[T], found: object) -> T:
    """Return a dataclass, or a plain value, of what JSON gave; raise ValueError."""
    return cast("T", _reader(cast("Hashable", kind))(found))


def read_optional(kind: type[T], found: object) -> T | None:
    """Return likewise a dataclass, or None of a null."""
    return None if found is None else read(kind, found)


def read_all(kind: type[T], found: object) -> dict[str, T]:
    """Return likewise all values of a JSON object, by name."""
    _expect(found, dict)
    return {name: read(kind, one) for name, one in cast("Document", found).items()}


def loads(text: str | bytes) -> Document:
    """Return a JSON object; raise ValueError for anything else."""
    try:
        found = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    if not isinstance(found, dict):
        raise ValueError("no JSON object")  # noqa: TRY004 - as of a text that is none
    return found


@cache
def _names(kind: Hashable) -> tuple[str, ...]:
    return tuple(
        field.name
        for field in fields(cast("type", kind))
        if field.metadata.get("json", True)
    )


def _fields_or_items(value: object) -> object:
    """Return what the standard library can write of an object that it cannot."""
    if isinstance(value, Mapping):
        return dict(value)
    return sorted(value) if isinstance(value, frozenset) else shallow(value)


@cache
def _reader(kind: Any) -> _Read:
    """Return what reads values of an annotation."""
    origin = get_origin(kind)
    if is_dataclass(kind):
        return _record_reader(cast("type", kind))
    if origin in {Union, types.UnionType}:
        return _optional_reader(kind)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        key, one = get_args(kind)
        return _mapping_reader(_reader(one), int if key is int else str)
    if origin is tuple and get_args(kind)[-1] is not Ellipsis:
        return _tuple_reader([_reader(one) for one in get_args(kind)])
    if isinstance(origin, type) and issubclass(origin, Sequence | AbstractSet):
        make = next(one for one in _MAKE if issubclass(origin, one))
        return _sequence_reader(_reader(get_args(kind)[0]), _MAKE[make])
    return _plain_reader(kind)


_MAKE: Final[Mapping[type, Callable[[list[Any]], Any]]] = {
    list: list,
    AbstractSet: frozenset,
    Sequence: tuple,
}


def _record_reader(kind: type) -> _Read:
    hints = get_type_hints(kind)
    readers = {name: _reader(hints[name]) for name in _names(kind)}
    needed = {
        field.name
        for field in fields(kind)
        if field.default is MISSING and field.default_factory is MISSING
    }

    absent = {
        field.name: field.metadata["absent"]
        for field in fields(kind)
        if "absent" in field.metadata
    }

    def read_record(found: Any) -> Any:
        _expect(found, dict)
        if not needed <= found.keys():
            raise ValueError(f"no {min(needed - found.keys())!r}")
        known = {
            name: one(found[name]) for name, one in readers.items() if name in found
        }
        return kind(**(absent | known))

    return read_record


def _optional_reader(kind: Any) -> _Read:
    """Return the reader of `X | None`; of more than one X nothing tells which it is."""
    inner = [one for one in get_args(kind) if one is not types.NoneType]
    read_inner = _reader(inner[0]) if len(inner) == 1 else _refuse
    return lambda found: None if found is None else read_inner(found)


def _refuse(_found: object) -> None:
    raise ValueError("null was expected")


def _mapping_reader(read_one: _Read, read_name: Callable[[str], Hashable]) -> _Read:
    def read_mapping(found: Any) -> Any:
        _expect(found, dict)
        return {read_name(name): read_one(one) for name, one in found.items()}

    return read_mapping


def _tuple_reader(readers: Sequence[_Read]) -> _Read:
    """Return the reader of a tuple that is not of one kind, or not of any length."""

    def read_tuple(found: Any) -> Any:
        _expect(found, list)
        if len(found) != len(readers):
            raise ValueError(f"{len(readers)} values were expected")
        return tuple(one(value) for one, value in zip(readers, found, strict=True))

    return read_tuple


def _sequence_reader(read_one: _Read, make: Callable[[list[Any]], Any]) -> _Read:
    def read_sequence(found: Any) -> Any:
        _expect(found, list)
        return make([read_one(one) for one in found])

    return read_sequence


def _plain_reader(kind: Any) -> _Read:
    expected = (int, float) if kind is float else kind

    def read_plain(found: Any) -> Any:
        if not isinstance(found, expected):
            raise ValueError(f"{kind.__name__} was expected")  # noqa: TRY004 - likewise
        return found

    return read_plain


def _expect(found: object, kind: type) -> None:
    if not isinstance(found, kind):
        raise ValueError(f"{kind.__name__} was expected")  # noqa: TRY004 - likewise
