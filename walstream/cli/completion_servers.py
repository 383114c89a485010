"""Shell completion from servers: names of tables, slots and topics."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Final

import typer

from walstream.cli.completion import TIMEOUT_S, complete
from walstream.cli.tail.brokers import of_brokers, of_config
from walstream.config import Config, PostgresSource, SqlSource
from walstream.errors import WalstreamError
from walstream.kafka.topic_reader import TopicReader
from walstream.postgres import catalog, slot_inventory
from walstream.postgres.connection import session
from walstream.records.router import matches

_INTERNAL: Final = "__"  # Kafka's own topics


def tables(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the tables of a source, or of all."""
    return complete(ctx, incomplete, _tables)


def slots(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the slots of the servers."""
    return complete(ctx, incomplete, _slots)


def topics(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the topics of the sink's brokers, or of those that are named."""
    return complete(ctx, incomplete, _topics)


def _wanted(config: Config, ctx: typer.Context) -> dict[str, object]:
    """Return the source that is named so far, or all."""
    name = ctx.params.get("source")
    named = name if isinstance(name, str) and name in config.sources else ""
    return {
        other: source
        for other, source in config.sources.items()
        if not named or other == named
    }


def _tables(config: Config, ctx: typer.Context) -> Iterable[str]:
    for source in _wanted(config, ctx).values():
        if isinstance(source, SqlSource):
            yield from source.tables
        elif isinstance(source, PostgresSource):
            patterns = source.tables or ["*"]
            known: Iterable[str] = ()
            with suppress(WalstreamError), session(source.dsn) as connection:
                known = catalog.tables(connection)
            for name in known:
                if any(matches(pattern, name) for pattern in patterns):
                    yield name


def _slots(config: Config, ctx: typer.Context) -> Iterable[str]:
    found: set[str] = set()
    for source in _wanted(config, ctx).values():
        if isinstance(source, PostgresSource):
            with suppress(WalstreamError), session(source.dsn) as connection:
                found |= {slot.name for slot in slot_inventory.every(connection)}
    return found


def _topics(config: Config, ctx: typer.Context) -> Iterable[str]:
    brokers, sink = ctx.params.get("brokers"), ctx.params.get("sink")
    client = of_brokers(brokers) if brokers else of_config(config, sink)
    with TopicReader(client.properties, TIMEOUT_S) as reader:
        return [name for name in reader.topics() if not name.startswith(_INTERNAL)]
