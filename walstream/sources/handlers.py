"""A source's handlers as its sinks name them, and what its tables say to them."""

from collections.abc import Iterable, Iterator

from walstream.config import Config
from walstream.config.handler import (
    FilterHandler,
    MaskHandler,
    OutboxHandler,
    PackageHandler,
)
from walstream.config.sink import HandledSink, RoutedSink
from walstream.errors import ConfigError, Repair
from walstream.op import Table
from walstream.postgres.catalog import TableFacts
from walstream.postgres.table_pattern import unmatched
from walstream.records.handlers.chain import Chain, Spec, is_outbox
from walstream.records.named_topics import MAX_NAMED_TOPICS
from walstream.records.router import matches
from walstream.sources.routers import Routers, make_full


def handler_specs(sink: HandledSink) -> tuple[Spec, ...]:
    """Return what a sink's handlers are made of; picklable."""
    return tuple(
        Spec(
            one.kind,
            tuple(one.tables),
            one.options
            if isinstance(one, PackageHandler)
            else one.model_dump(exclude={"kind", "tables"}),
        )
        for one in sink.handlers
    )


def max_topics(sink: HandledSink) -> int:
    """Return how many topics the records of a sink's handlers may name."""
    told = [one.max_topics for one in sink.handlers if isinstance(one, OutboxHandler)]
    return max(told, default=MAX_NAMED_TOPICS)


def outbox_sinks(config: Config, source: str, table: str) -> list[str]:
    """Name the sinks of a source to which a table, `schema.table`, is an outbox."""
    return [
        name
        for name in config.sources[source].sinks
        if is_outbox(handler_specs(config.sinks[name]), table)
    ]


def is_backfilled(config: Config, source: str, table: str) -> bool:
    """Return whether some sink takes a table's existing rows: no outbox does."""
    return len(outbox_sinks(config, source, table)) < len(config.sources[source].sinks)


def handler_problems(
    routers: Routers, captured: Iterable[TableFacts]
) -> Iterator[tuple[str, ConfigError]]:
    """Name, with the sink, what its handlers cannot do to the tables."""
    tables = list(captured)
    for name, sink in {**routers.routed, **routers.packaged}.items():
        for error in _problems(routers, name, sink, tables) if sink.handlers else ():
            yield (
                name,
                ConfigError(
                    f"sinks.{name}.handlers: {error.args[0]}",
                    hint=error.hint,
                    repair=error.repair,
                ),
            )


def idle_patterns(
    routers: Routers, captured: Iterable[TableFacts]
) -> Iterator[tuple[str, str, str]]:
    """Name, with the sink, each pattern of its handlers that matches no table, and why.

    Such a handler does nothing, and who misspelt it would believe that it does. Of a
    table's topic, which may be another source's, only the case can be seen to be wrong.
    """
    names = [table.full_name for table in captured]
    if not names:
        return  # nothing is sent, which is said elsewhere
    for name, sink in {**routers.routed, **routers.packaged}.items():
        patterns = {pattern for one in sink.handlers for pattern in one.tables}
        for pattern, what in unmatched(sorted(patterns), names).items():
            yield name, pattern, what
        folded = {one.casefold(): one for one in names}
        for mapped in sink.topics if isinstance(sink, RoutedSink) else ():
            meant = folded.get(mapped.casefold())
            if meant not in {None, mapped} and mapped not in names:
                yield name, mapped, f"matches no table; did you mean {meant!r}?"


def _problems(
    routers: Routers, name: str, sink: HandledSink, tables: list[TableFacts]
) -> Iterator[ConfigError]:
    if name in routers.packaged and any(
        isinstance(one, OutboxHandler) for one in sink.handlers
    ):
        yield ConfigError(
            "outbox makes finished records, and a sink of a package takes only ops",
            hint="give the outbox a sink of kind kafka",
        )
        return
    try:
        chain = Chain(handler_specs(sink))
        for facts in tables:
            shape = chain.shape(_table(facts))
            if name in routers.routed:
                _check_route(routers, name, shape)
                _check_masks(routers, name, sink, _table(facts))
    except ConfigError as error:
        yield error
        return
    yield from chain.idle(map(_table, tables))
    specs = handler_specs(sink)
    for number, one in enumerate(sink.handlers):
        if isinstance(one, FilterHandler) and one.column and _compares_old_rows(one):
            yield from _undecidable(one, Chain(specs[:number]), tables)


def _compares_old_rows(handler: FilterHandler) -> bool:
    return not {"update", "delete"}.isdisjoint(handler.operations)


def _table(facts: TableFacts) -> Table:
    key = facts.primary_key if facts.full else facts.identity
    indexes = tuple(sorted(facts.columns.index(name) for name in key))
    return Table(facts.schema, facts.name, facts.columns, indexes)


def _check_route(routers: Routers, sink: str, shape: Table) -> None:
    """Raise ConfigError where a partition key went with its column."""
    mapping = routers[sink].mapping(shape.schema, shape.name)
    columns = shape.source_columns or shape.columns
    for column in (mapping and mapping.partition_key) or ():
        if column not in columns:
            raise ConfigError(
                f"drop_columns removes {column!r} of table {shape.full_name!r}, which "
                "is its partition_key",
                hint="remove it from columns, or mask it with a secret",
            )


def _check_masks(routers: Routers, name: str, sink: HandledSink, table: Table) -> None:
    """Raise ConfigError where one text would stand for every partition key."""
    mapping = routers[name].mapping(table.schema, table.name)
    partition_key = set((mapping and mapping.partition_key) or ())
    specs = handler_specs(sink)
    for number, one in enumerate(sink.handlers):
        if not isinstance(one, MaskHandler) or one.secret is not None:
            continue
        if not any(matches(pattern, table.full_name) for pattern in one.tables):
            continue
        shape = Chain(specs[:number]).shape(table)
        names = dict(
            zip(shape.columns, shape.source_columns or shape.columns, strict=True)
        )
        hidden = partition_key & {names.get(column) for column in one.columns}
        if hidden:
            raise ConfigError(
                f"mask gives every row of table {table.full_name!r} the same text for "
                f"{', '.join(sorted(map(str, hidden)))}, part of its partition_key",
                hint="write secret instead of text: a hash still tells keys apart",
            )


def _undecidable(
    handler: FilterHandler, before: Chain, tables: Iterable[TableFacts]
) -> Iterator[ConfigError]:
    """Name tables whose old rows would not tell whether they matched."""
    for table in tables:
        if not any(matches(pattern, table.full_name) for pattern in handler.tables):
            continue
        whole = table.full and table.old_rows_whole
        if whole or not (table.full or table.identity):
            continue  # of a table without a replica identity there are inserts alone
        shape = before.shape(_table(table))
        names = shape.source_columns or shape.columns
        column = names[shape.columns.index(handler.column)]
        if table.full or column not in table.identity:
            yield ConfigError(
                f"filter: an old row of table {table.full_name!r} does not hold "
                f"{handler.column!r}: it would be unknown which rows leave the filter",
                hint="set REPLICA IDENTITY FULL on the table",
                repair=Repair(sql=make_full(table), then="walstream run"),
            )
