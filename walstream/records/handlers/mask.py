"""A handler that hides values: behind one text, or behind a keyed hash.

A hash tells equal values apart from others and no more, so that a masked key stays a
key. NULL, and what was not sent, stay what they are.
"""

import hmac
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from walstream.config.handler import HandlerSettings
from walstream.errors import ConfigError
from walstream.op import ColumnFacts, ReplicationOp, Table
from walstream.row import Row, Value
from walstream.telemetry.json_codec import read

_TEXT_OID: Final = 25  # what it was, a masked value is a text


@dataclass(frozen=True, slots=True)
class _Settings:
    columns: Sequence[str]
    text: str | None
    secret: str | None = field(repr=False)


class Mask:
    """Masks columns, of the old row as of the new."""

    def __init__(self, table: Table, settings: HandlerSettings) -> None:
        """Raise ConfigError where a fixed text would make all keys one."""
        told = read(_Settings, settings)
        self.named = frozenset(told.columns)
        self._indexes = [
            i for i, name in enumerate(table.columns) if name in self.named
        ]
        secret = told.secret
        if secret is None:
            self._mask = _constant(told.text or "")
        else:
            self._mask = _hashed(secret.encode())
        one = [table.columns[i] for i in table.key if i in self._indexes]
        if secret is None and one:
            raise ConfigError(
                f"mask gives every row of table {table.full_name!r} the same text for "
                f"{', '.join(one)}, part of its key",
                hint="write secret instead of text: a hash still tells keys apart",
            )
        self.table = table
        if self._indexes and table.type_oids:
            self.table = _as_texts(table, self._indexes)

    def handle(self, op: ReplicationOp) -> Iterator[ReplicationOp]:
        old, new = self._masked(op.old), self._masked(op.new)
        yield replace(op, table=self.table, old=old, new=new)

    def _masked(self, row: Row | None) -> Row | None:
        if row is None:
            return None
        values: list[Value] = list(row)
        for index in self._indexes:
            value = values[index]
            if isinstance(value, str):
                values[index] = self._mask(value)
        return values


def _as_texts(table: Table, indexes: Sequence[int]) -> Table:
    """Return the table with these columns as texts: their types no longer hold."""
    oids, modifiers = list(table.type_oids), list(table.modifiers)
    facts = list(table.facts)
    for index in indexes:
        oids[index] = _TEXT_OID
        if modifiers:
            modifiers[index] = -1
        if facts:
            facts[index] = ColumnFacts(
                facts[index].not_null, type_oid=_TEXT_OID, type_name="text"
            )
    return replace(
        table,
        type_oids=tuple(oids),
        modifiers=tuple(modifiers),
        facts=tuple(facts),
    )


def _constant(text: str) -> Callable[[str], str]:
    return lambda _value: text


def _hashed(secret: bytes) -> Callable[[str], str]:
    return lambda value: hmac.digest(secret, value.encode(), "sha256").hex()
