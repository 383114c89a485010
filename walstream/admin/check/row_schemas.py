"""Findings of `check` about registries: what polled tables would register there."""

from collections.abc import Iterator
from typing import Final

from walstream.admin.check import schemas
from walstream.config import SqlSource
from walstream.errors import ConfigError, WalstreamError
from walstream.finding import Finding
from walstream.formats.encodings.subject import SubjectSchema
from walstream.sources.debezium_options import registry_of
from walstream.sources.routers import Routers
from walstream.sources.sql.inspection import DatabaseInspection, TableInspection
from walstream.sources.sql.topics import topics_of

_STOPS: Final = "the table would not be polled"


def inspect(
    routers: Routers, name: str, source: SqlSource, sight: DatabaseInspection
) -> Iterator[Finding]:
    """Look up the schemas of each table that can be polled."""
    registries = {
        sink: told
        for sink, config in routers.configs.items()
        if (told := registry_of(config)) is not None
    }
    if not registries:
        return
    wanted: dict[str, list[SubjectSchema]] = {sink: [] for sink in registries}
    for table, seen in sight.tables.items():
        try:
            for sink, found in _of_table(routers, name, source, seen, table).items():
                wanted[sink] += found
        except ConfigError as error:
            yield Finding.of(error, "schema-names", f"table {table}", _STOPS)
    for sink, told in registries.items():
        yield from schemas.of_sink(sink, told, wanted[sink])


def _of_table(
    routers: Routers, name: str, source: SqlSource, seen: TableInspection, table: str
) -> dict[str, list[SubjectSchema]]:
    from walstream.sources.sql.table_schemas import (  # noqa: PLC0415 - SQLAlchemy
        TableSchemas,
    )

    if seen.shape is None:
        return {}
    try:
        topics = topics_of(routers, name, table)
    except WalstreamError:
        return {}  # said by who looks at topics
    sinks = {sink: routers.configs[sink] for sink in topics}
    of_table = TableSchemas(sinks, source.name_in_records(name), table, topics)
    parts = of_table.parts(seen.shape).items()
    return {sink: [one.schema for one in found] for sink, found in parts}
