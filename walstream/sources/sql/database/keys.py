"""Keys as they come: whole numbers, ascending. What else is met is refused, unnamed."""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import islice
from operator import lt
from typing import Any, Final

from walstream.errors import ConfigError
from walstream.sources.sql.database.shape import Shape

_INT: Final = {int}


def whole(value: Any, shape: Shape) -> int | None:
    """Give the key as an int; None stays None."""
    return None if value is None else wholes([value], shape)[0]


def wholes(values: Sequence[Any], shape: Shape) -> list[int]:
    """Give keys as ints; ConfigError where one is null, a fraction or a text."""
    if set(map(type, values)) <= _INT:
        return list(values)
    return [_whole(value, shape) for value in values]


def ascending(values: Iterable[Any], after: int | None, shape: Shape) -> list[int]:
    """Likewise; ConfigError unless each is greater than the one before it."""
    keys = wholes(list(values), shape)
    if after is not None and keys and keys[0] <= after:
        raise _not_unique(shape)
    if not all(map(lt, keys, islice(keys, 1, None))):
        raise _not_unique(shape)
    return keys


def _whole(value: Any, shape: Shape) -> int:
    if type(value) is int:
        return value
    if isinstance(value, Decimal) and value.is_finite() and value == int(value):
        return int(value)  # of engines whose only numbers are decimal
    raise ConfigError(
        f"table {shape.name}: the key {shape.key.name} holds what is no integer",
        hint="delete or correct such rows, or name another column as primary_key",
    )


def _not_unique(shape: Shape) -> ConfigError:
    return ConfigError(
        f"table {shape.name}: the key {shape.key.name} is not unique",
        hint="delete or correct such rows, or name another column as primary_key",
    )
