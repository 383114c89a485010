"""Handlers that change which columns a table's ops have, and their names."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import TypeVar

from walstream.config.handler import HandlerSettings
from walstream.errors import ConfigError
from walstream.op import ReplicationOp, Table
from walstream.row import Row, any_absent
from walstream.telemetry.json_codec import read

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Dropped:
    columns: Sequence[str]


@dataclass(frozen=True, slots=True)
class _Renamed:
    columns: Mapping[str, str]  # new names by old ones


class DropColumns:
    """Leaves columns out, of the old row as of the new."""

    def __init__(self, table: Table, settings: HandlerSettings) -> None:
        """Raise ConfigError for a column of the row key: no reader could do without."""
        self.named = frozenset(read(_Dropped, settings).columns)
        dropped = {i for i, name in enumerate(table.columns) if name in self.named}
        lost = [table.columns[index] for index in table.key if index in dropped]
        if lost:
            raise ConfigError(
                f"drop_columns removes {', '.join(lost)} of table {table.full_name!r}, "
                "part of its key",
                hint="remove it from columns, or mask it with a secret",
            )
        kept = [i for i in range(len(table.columns)) if i not in dropped]
        if not kept:
            raise ConfigError(
                f"drop_columns removes every column of table {table.full_name!r}",
                hint="leave one",
            )
        self.table = table
        self._pick = None
        if dropped:
            self._pick = _picker(kept)
            self.table = _picked(table, kept)

    def handle(self, op: ReplicationOp) -> Iterator[ReplicationOp]:
        pick = self._pick
        if pick is None:
            yield op
            return
        old = None if op.old is None else pick(op.old)
        new = None if op.new is None else pick(op.new)
        absent = op.absent and (any_absent(old) or any_absent(new))
        yield replace(op, table=self.table, old=old, new=new, absent=absent)


def _picker(kept: list[int]) -> Callable[[Row], Row]:
    # of one column: an itemgetter of a slice gives a sequence, too
    return itemgetter(*kept) if len(kept) > 1 else itemgetter(_only(kept[0]))


def _only(index: int) -> slice:
    return slice(index, index + 1)


def _picked(table: Table, kept: list[int]) -> Table:
    def of(names: tuple[T, ...]) -> tuple[T, ...]:
        return tuple(names[index] for index in kept) if names else ()

    return replace(
        table,
        columns=of(table.columns),
        key=tuple(kept.index(index) for index in table.key),
        type_oids=of(table.type_oids),
        source_columns=of(table.source_columns or table.columns),
        modifiers=of(table.modifiers),
        facts=of(table.facts),
    )


class RenameColumns:
    """Calls columns otherwise; rows stay as they are."""

    def __init__(self, table: Table, settings: HandlerSettings) -> None:
        """Raise ConfigError where two columns would have one name."""
        names = read(_Renamed, settings).columns
        self.named = frozenset(names)
        columns = tuple(names.get(name, name) for name in table.columns)
        if twice := sorted({name for name in columns if columns.count(name) > 1}):
            raise ConfigError(
                f"rename_columns gives table {table.full_name!r} two columns called "
                f"{', '.join(twice)}",
                hint="give each a name of its own",
            )
        self.table = table
        if columns != table.columns:
            self.table = replace(
                table,
                columns=columns,
                source_columns=table.source_columns or table.columns,
            )

    def handle(self, op: ReplicationOp) -> Iterator[ReplicationOp]:
        yield replace(op, table=self.table)
