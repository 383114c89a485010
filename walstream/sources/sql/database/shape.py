"""A table as it is polled: records that go into Spark's tasks."""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnClause, TableClause, column, table
from sqlalchemy.types import TypeEngine

Type = TypeEngine[Any]


@dataclass(frozen=True, slots=True)
class TableSpec:
    """Settings of a table in the configuration."""

    name: str  # "table" or "schema.table"
    primary_key: str
    fields: tuple[str, ...] = ()  # none: all


@dataclass(frozen=True, slots=True)
class SqlColumn:
    name: str
    kind: str  # its type as SQLAlchemy calls it: "BIGINT"
    type: Type = field(compare=False, repr=False)
    nullable: bool = field(default=True, compare=False)  # as the catalog says


@dataclass(frozen=True, slots=True)
class SqlTableShape:
    """Existing shape of the table."""

    name: str  # as configured
    schema: str  # "": the one that the session is in
    table: str
    key: SqlColumn
    columns: tuple[SqlColumn, ...]  # as selected; the key is one of them
    dialect: str = ""  # SQLAlchemy's name of the engine

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.columns)

    @property
    def key_place(self) -> int:
        """The key's place among the columns."""
        return self.names.index(self.key.name)

    def clause(self) -> TableClause:
        """Return what SQLAlchemy selects from; it quotes every name that needs it.

        Untyped, so that it hands out the values as the driver gives them.
        """
        return _clause(self.schema, self.table, self.names)


@lru_cache(maxsize=256)
def _clause(schema: str, name: str, columns: tuple[str, ...]) -> TableClause:
    # the very same for all parts of a statement: else it would select from two tables
    made: list[ColumnClause[Any]] = [column(one) for one in columns]
    return table(name, *made, schema=schema or None)
