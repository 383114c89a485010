"""Choice of tables, by names and patterns of `schema.table`.

Whether such a table can be read is for a judge to say: a stream that runs reads beside
itself what has a row key, Spark reads whatever has rows.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final, Protocol, Self

from walstream.config import PostgresSource
from walstream.errors import ConfigError, Transient
from walstream.postgres import catalog, publication
from walstream.postgres.catalog import TableFacts
from walstream.postgres.connection import Connection, session
from walstream.records.router import matches
from walstream.sources.postgres.backfill import condition
from walstream.sources.postgres.backfill.table import relations

_WILD: Final = frozenset("*?")


class Judge(Protocol):
    """Knows what can be read."""

    def table(self, table: TableFacts, *, named: bool) -> str:
        """Return why a captured table is left out; "": it is not.

        Raise where nothing else is to be read either.
        """

    def other(self, name: str) -> None:
        """Let a view or a foreign table be read, or raise."""


@dataclass(frozen=True, slots=True)
class Ground:
    """Tables to choose from, by `schema.table`."""

    publication: str
    captured: Mapping[str, TableFacts]  # as their rows go out
    facts: Mapping[str, TableFacts]  # of all tables
    kinds: Mapping[str, str]  # pg_class.relkind of whatever has rows

    @classmethod
    def of(cls, connection: Connection, source: PostgresSource) -> Self:
        """Look at the database."""
        facts = catalog.tables(connection)
        return cls(
            source.publication,
            captured(connection, facts, source.publication),
            facts,
            relations(connection),
        )


@dataclass(frozen=True, slots=True)
class TableChoice:
    """Tables to read."""

    tables: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)  # views and foreign tables
    left_out: dict[str, str] = field(default_factory=dict)  # why, by table


def choose(ground: Ground, wanted: Iterable[str], judge: Judge) -> TableChoice:
    """Find what is meant; raise for a name that cannot be.

    A pattern means captured tables, or where it finds none, views and foreign tables.
    """
    choice = TableChoice()
    taken: set[str] = set()
    for name in wanted:
        full = name if "." in name else f"public.{name}"
        named = _WILD.isdisjoint(full)
        tables = [table for table in ground.captured if _means(full, table)]
        for table in tables:
            why = judge.table(ground.captured[table], named=named)
            if why:
                choice.left_out[table] = why
            elif table not in taken:
                choice.tables.append(table)
                taken.add(table)
        if not tables:
            others = _others(ground, full, named=named)
            for other in others:
                judge.other(other)
            choice.others.extend(one for one in others if one not in taken)
            taken.update(others)
    return choice


def captured(
    connection: Connection, facts: Mapping[str, TableFacts], name: str
) -> dict[str, TableFacts]:
    """Pick the tables that are published, as their rows go out: roots or leaves.

    As pg_publication_tables has them, which would wait for each table's lock.
    """
    held: set[str] = set()
    names = (name, publication.insert_only(name))
    for made in publication.find(connection, names).values():
        every = made.all_tables
        schemas = {one.schema for one in facts.values()} if every else made.schemas
        oids = [*made.tables, *publication.oids_in(connection, schemas)]
        held.update(publication.names_of(connection, oids, leaves=not made.via_root))
    return {
        name: table
        for name, table in facts.items()
        if name in held and table.persistence == "p" and table.root not in held
    }


def _means(pattern: str, table: str) -> bool:
    return pattern == table or matches(pattern, table)


def _others(ground: Ground, full: str, *, named: bool) -> list[str]:
    """Return the table of a name that is not captured; raise if it cannot be read."""
    meant = [name for name in ground.kinds if _means(full, name)]
    others = [name for name in meant if ground.kinds[name] not in "rp"]
    if others:
        return others
    those = f"captured are: {', '.join(sorted(ground.captured)) or 'none'}"
    if not named:
        raise ConfigError(f"no captured table matches {full!r}", hint=those)
    if not meant:
        close = get_close_matches(full, ground.captured, n=1)
        raise ConfigError(
            f"there is no table {full!r}",
            hint=f"did you mean {close[0]!r}?" if close else those,
        )
    root = ground.facts[full].root if full in ground.facts else None
    if root in ground.captured:
        raise ConfigError(
            f"table {full!r} is streamed as {root!r}: it is its partition",
            hint=f"backfill {root!r}",
        )
    raise ConfigError(
        f"table {full!r} is not captured: its changes would be missing",
        hint=f"add it to `tables`, or to publication {ground.publication!r}; {those}",
    )


def check_condition(
    connection: Connection, ground: Ground, choice: TableChoice, where: str
) -> None:
    """Raise ConfigError unless a condition fits each table that was chosen."""
    for name in choice.tables if where else ():
        table = ground.facts[name]
        condition.check(connection, table.schema, table.name, where)


@contextmanager
def asking(source: PostgresSource) -> Iterator[Connection]:
    """Ask the server once: here nobody tries again."""
    try:
        with session(source.dsn) as connection:
            yield connection
    except Transient as error:
        raise Transient(
            str(error.args[0]), hint="no backfill was requested: run this command again"
        ) from None
