"""Findings of `check` about keys that Debezium's formats have no form for."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from walstream.config import PostgresSource
from walstream.errors import WalstreamError
from walstream.finding import Finding
from walstream.formats import DEBEZIUM
from walstream.formats.encodings import encoder_in
from walstream.op import Table
from walstream.postgres.catalog import TableFacts
from walstream.postgres.connection import session
from walstream.records.record_key import with_own_key
from walstream.sources.debezium_options import registry_of
from walstream.sources.postgres.backfill.publication_filter import KeyedTable
from walstream.sources.postgres.backfill.table import look_at_each
from walstream.sources.postgres.backfill.task_factory import wanted
from walstream.sources.routers import Routers

_WHY: Final = "the stream would stop at the table's first change"
# bool, integers, oid, texts, date, timestamps, numeric, uuid: all have a form
_PLAIN: Final = frozenset(
    {16, 20, 21, 23, 25, 26, 1042, 1043, 1082, 1114, 1184, 1700, 2950}
)


def inspect(
    routers: Routers, source: PostgresSource, captured: Iterable[TableFacts]
) -> Iterator[Finding]:
    """Make the keys of each table as the stream does, where a sink has such a format.

    The catalog's facts are asked only of tables whose keys are not of plain types.
    """
    sinks = [
        name
        for name, one in routers.routed.items()
        if one.format in DEBEZIUM or registry_of(one) is not None
    ]
    if not sinks:
        return
    every = [wanted(table, ()) for table in captured]
    with session(source.dsn) as connection:
        odd = [
            replace(wish, facts=True)
            for wish, table in _tables(look_at_each(connection, every))
            if not _is_plain(routers, table)
        ]
        for _, table in _tables(look_at_each(connection, odd)):
            for sink in sinks:
                if error := _refusal(routers, sink, table):
                    subject = f"table {table.full_name}"
                    yield Finding.of(error, "key-form", subject, _WHY)


def _tables(
    found: Iterable[tuple[KeyedTable, object]],
) -> Iterator[tuple[KeyedTable, Table]]:
    for wish, parts in found:
        if isinstance(parts, list) and parts:  # else its rows cannot be read: said
            yield wish, parts[0].relation.table


def _is_plain(routers: Routers, table: Table) -> bool:
    """Return whether all columns that some sink's keys are made of have a form."""
    chosen = routers.partition_key(table.schema, table.name)
    keyed = {
        *table.key,
        *(table.columns.index(n) for n in chosen if n in table.columns),
    }
    return all(table.type_oids[index] in _PLAIN for index in keyed)


def _refusal(routers: Routers, sink: str, table: Table) -> WalstreamError | None:
    try:
        route = routers[sink].route(table, routers.context(sink, "0/").origin)
        if route is not None:
            context = routers.context(sink, "0/")
            encoder = encoder_in(context.encoding, routers.routed[sink].format)
            with_own_key(route, encoder(table, context), table)
    except WalstreamError as error:
        return error
    return None
