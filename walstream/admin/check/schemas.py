"""Findings of `check` about registries: what today's tables would register there."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from walstream.config import PostgresSource
from walstream.config.registry import STOP, Registry
from walstream.errors import Repair, WalstreamError
from walstream.finding import Finding
from walstream.formats.encodings import encoder_in, parts_of
from walstream.formats.encodings.subject import SubjectSchema
from walstream.kafka.registry.client import RegistryClient
from walstream.kafka.registry.commands import register, relax
from walstream.kafka.registry.errors import SchemaIncompatible, SchemaUnregistered
from walstream.kafka.registry.registrar import Registrar
from walstream.kafka.registry.schema_difference import differing
from walstream.op import Table
from walstream.postgres.catalog import TableFacts
from walstream.postgres.connection import session
from walstream.records.handlers.chain import Chain
from walstream.records.record_key import with_own_key
from walstream.sources.debezium_options import registry_of
from walstream.sources.handlers import handler_specs
from walstream.sources.postgres.backfill.table import look_at_each
from walstream.sources.postgres.backfill.task_factory import wanted
from walstream.sources.routers import Routers
from walstream.telemetry import runtime

_AT_ONCE: Final = 16
_STOPS: Final = "walstream would stop at the table's first record"
_WAITS: Final = "walstream would wait at the first table that it does not know yet"


def inspect(
    routers: Routers, source: PostgresSource, captured: Iterable[TableFacts]
) -> Iterator[Finding]:
    """Look up the schemas of each table where a sink has a registry.

    Tables of which some columns are published are left to the stream. A registry is
    asked whether it answers, too, where there are none, or the server is away.
    """
    registries = {
        name: told
        for name, sink in routers.routed.items()
        if (told := registry_of(sink)) is not None
    }
    if not registries:
        return
    tables = _tables(source, captured)
    for name, told in registries.items():
        yield from of_sink(name, told, list(_schemas(routers, name, tables)))


def _tables(source: PostgresSource, captured: Iterable[TableFacts]) -> list[Table]:
    whole = (one for one in captured if one.full_name not in source.columns)
    every = [wanted(table, (), facts=True) for table in whole]
    if not every:
        return []
    try:
        with session(source.dsn) as connection:
            return [
                parts[0].relation.table
                for _, parts in look_at_each(connection, every)
                if isinstance(parts, list) and parts  # else it cannot be read: said
            ]
    except WalstreamError:
        return []  # said by who looked at the server


def _schemas(
    routers: Routers, sink: str, tables: Iterable[Table]
) -> Iterator[SubjectSchema]:
    """Yield the schemas of a sink's tables; what has no form is told elsewhere."""
    context = routers.context(sink, "0/")
    config = routers.configs[sink]
    make, chain = (
        encoder_in(config.encoding, config.format),
        Chain(handler_specs(config)),
    )
    for table in tables:
        try:
            shape = chain.shape(table)
            route = routers[sink].route(shape, context.origin)
            if route is None or chain.is_outbox(table):
                continue
            encoder = make(shape, context)
            columns = with_own_key(route, encoder, shape).key.columns
        except WalstreamError:
            continue
        for part in parts_of(encoder, route.topic, columns, context):
            yield part.schema


def of_sink(
    name: str, told: Registry, schemas: Sequence[SubjectSchema]
) -> Iterator[Finding]:
    """Look up all schemas of a sink."""
    try:
        yield from _looked_up(told, schemas)
    except WalstreamError as error:
        yield Finding.waits(error, "registry", f"sink {name}", _WAITS)


def _looked_up(told: Registry, schemas: Sequence[SubjectSchema]) -> Iterator[Finding]:
    """Look up all; raise what keeps from asking, be it the last question."""
    client = RegistryClient(told)
    look = partial(_look, client, Registrar(client), told)
    try:
        if not schemas:
            client.reach()
        with runtime.thread_pool(_AT_ONCE, "registry") as threads:
            for found in threads.map(look, schemas):
                if found is not None:
                    yield found
    finally:
        client.close()


def _look(
    client: RegistryClient,
    registrar: Registrar,
    told: Registry,
    shape: SubjectSchema,
) -> Finding | None:
    schema = registrar.wanted(shape)
    try:
        client.lookup(schema)
    except SchemaUnregistered as error:
        subject = f"subject {schema.subject}"
        if not told.auto_register:
            repair = Repair(command=register(told, schema))
            found = Finding.waits(error, "schema-unregistered", subject, _WAITS)
            return replace(found, repair=repair)
        if told.on_incompatible != STOP or client.fits(schema):
            return None
        kept = registrar.wanted(shape, keep=True)
        if kept != schema and client.fits(kept):
            return None
        what = differing(client.latest(schema.subject) or "", schema)
        said = f"the table's schema is not compatible with earlier ones: {what}"
        repair = Repair(command=relax(told, schema.subject), then="walstream run")
        refused = SchemaIncompatible(said, repair=repair)
        return Finding.of(refused, "schema-incompatible", subject, _STOPS)
    return None
