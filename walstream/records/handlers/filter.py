"""A handler that lets some ops pass: by their kind, and by a column's value.

A filter by value is a view: its readers hold the rows that match. So an update by which
a row leaves it goes on as a delete, one by which a row comes in as an insert, and what
never matched is skipped.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from walstream.config.handler import HandlerSettings
from walstream.errors import ConfigError, WalstreamError
from walstream.lsn import show
from walstream.op import Kind, ReplicationOp, Table, halves
from walstream.row import OMITTED, NotSent, Row, any_absent
from walstream.telemetry.json_codec import read

_KINDS: Final = {kind.value.lower(): kind for kind in Kind}


@dataclass(frozen=True, slots=True)
class _Settings:
    operations: Sequence[str]
    column: str  # "": rows pass whatever they hold
    equals: str | None
    one_of: Sequence[str] | None
    is_null: bool | None


class Filter:
    """Lets pass what has one of the kinds, and a row that matches."""

    def __init__(self, table: Table, settings: HandlerSettings) -> None:
        told = read(_Settings, settings)
        self._kinds = {_KINDS[name] for name in told.operations}
        column = told.column
        self.named = frozenset({column} if column else ())
        self.table = table
        self._index: int | None = None
        if column in table.columns:
            self._index = table.columns.index(column)
        elif column:
            raise ConfigError(
                f"filter: table {table.full_name!r} has no column {column!r}",
                hint="name the filter's tables, all of which have it",
            )
        self._wanted = _wanted(told)

    def handle(self, op: ReplicationOp) -> Iterator[ReplicationOp]:
        # a backfill's truncate is no change of the source's: its rows come anew
        emptied = op.snapshot and op.kind is Kind.TRUNCATE
        if op.kind not in self._kinds and not emptied:
            return
        if self._index is None or op.kind is Kind.TRUNCATE:
            yield op
        elif op.kind is Kind.UPDATE:
            yield from self._update(op)
        elif op.kind is Kind.DELETE:
            # where the old row does not tell: nothing is lost by a delete too many
            if self._matches(op.old, self._index) is not False:
                yield op
        elif self._told(op, self._matches(op.new, self._index)):
            yield op

    def _update(self, op: ReplicationOp) -> Iterator[ReplicationOp]:
        index = self._index or 0
        now = self._matches(op.new, index)
        before = self._matched(op, index, now)
        if now is None:
            now = self._told(op, before)  # it was not sent, since it did not change
        if now and before is not False:
            yield op
        elif now:
            yield _as_insert(op)
        elif before is not False:
            yield _as_delete(op)

    def _told(self, op: ReplicationOp, matches: bool | None) -> bool:  # noqa: FBT001 - what was found
        if matches is None:
            raise WalstreamError(
                f"filter: a row of table {op.table.full_name!r} at ({show(op.lsn)}, "
                f"{op.seq_id}) does not show whether it matches",
                hint="set REPLICA IDENTITY FULL on the table",
            )
        return matches

    def _matched(self, op: ReplicationOp, index: int, now: bool | None) -> bool | None:  # noqa: FBT001 - what was found of the new row
        """Return whether the row matched before; None if that is unknown."""
        if op.old is not None:
            return self._matches(op.old, index)
        # no old row is sent where nothing of the replica identity changed
        return now if index in op.table.key else None

    def _matches(self, row: Row | None, index: int) -> bool | None:
        if row is None:
            return None
        value = row[index]
        return None if isinstance(value, NotSent) else value in self._wanted


def _wanted(told: _Settings) -> "frozenset[str | None] | _NotNull":
    if told.is_null is not None:
        return frozenset({None}) if told.is_null else _NotNull()
    if told.equals is not None:
        return frozenset({told.equals})
    return frozenset(told.one_of or ())


class _NotNull:
    """All but NULL."""

    def __contains__(self, value: object) -> bool:
        return value is not None


def _as_insert(op: ReplicationOp) -> ReplicationOp:
    if op.key_changed:
        return halves(op)[1]
    return replace(op, kind=Kind.INSERT, old=None, absent=any_absent(op.new))


def _as_delete(op: ReplicationOp) -> ReplicationOp:
    """Take the row away: of an old one that was not sent the key is the new one's."""
    if op.key_changed:
        return halves(op)[0]
    old = op.old
    if old is None:
        new, key = op.new or (), op.table.key
        old = [value if i in key else OMITTED for i, value in enumerate(new)]
    return replace(op, kind=Kind.DELETE, old=old, new=None, absent=any_absent(old))
