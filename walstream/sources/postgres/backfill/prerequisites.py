"""Prerequisites of a backfill, checked before anything is created."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from walstream.config import Config
from walstream.errors import ConfigError, Repair, WalstreamError
from walstream.postgres.catalog import TableFacts
from walstream.postgres.connection import Connection
from walstream.sources.postgres.backfill import condition
from walstream.sources.postgres.backfill.publication_filter import KeyedTable
from walstream.sources.postgres.backfill.table import look_at_each
from walstream.sources.postgres.backfill.task_factory import wanted
from walstream.spark import prerequisites as of_spark
from walstream.spark.prerequisites import Obstacle

_INSTALLED: Final = frozenset({"pyspark", "java"})


def is_small(config: Config, size: int) -> bool:
    """Return whether one process reads so many bytes of tables, without Spark."""
    return size < config.spark.min_size


def of_first(
    config: Config,
    connection: Connection,
    captured: Mapping[str, TableFacts],
    where: Mapping[str, str],
) -> Iterator[Obstacle]:
    """Yield what keeps the first backfill from reading all rows of all tables.

    `where` has the conditions of tables of which a part is read.
    """
    wishes = (
        replace(wanted(table, ()), where=where.get(table.full_name, ""))
        for table in captured.values()
        if table.root not in captured  # else it is read as its root
    )
    size, refused = _look(connection, wishes)
    for error in refused:
        part = isinstance(error, ConfigError)
        yield "backfill-where" if part else "backfill-right", error
    for name in sorted(where.keys() & captured.keys()):
        table = captured[name]
        try:
            condition.check(connection, table.schema, table.name, where[name])
        except ConfigError as error:
            yield "backfill-where", error
    yield from _of_size(config, size)


def of_rest(
    config: Config, connection: Connection, names: Iterable[str]
) -> Iterator[Obstacle]:
    """Yield what Spark lacks, if what is left needs it; tables as `schema.table`.

    One that cannot be read is given up when its turn comes.
    """
    parted = (name.partition(".") for name in names)
    wishes = (KeyedTable(schema, name) for schema, _, name in parted)
    size, _ = _look(connection, wishes)
    yield from _of_size(config, size)


def _look(
    connection: Connection, wishes: Iterable[KeyedTable]
) -> tuple[int, list[WalstreamError]]:
    """Return the bytes of all that can be read, and why the others cannot."""
    size, refused = 0, []
    for _, found in look_at_each(connection, wishes):
        if isinstance(found, WalstreamError):
            refused.append(found)
        else:
            size += sum(part.size for part in found)
    return size, refused


def _of_size(config: Config, size: int) -> Iterator[Obstacle]:
    if is_small(config, size):
        return
    for code, error in of_spark.on_this_machine(config):
        yield code, _or_without(error) if code in _INSTALLED else error


def _or_without(error: WalstreamError) -> ConfigError:
    """Return a message that a stream alone needs nothing of it."""
    hint = f'{error.hint}; or write backfill = "never", which needs none: then'
    hint += " existing rows are not sent"
    return ConfigError(str(error.args[0]), hint=hint, repair=Repair(then=hint))
