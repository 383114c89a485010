"""A source's routers, one for each of its sinks, and what they ask of its tables."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from walstream.config import Config, KafkaSinkConfig, PackageSource, PostgresSource, dsn
from walstream.config.sink import PackageSink, RoutedSink
from walstream.errors import ConfigError, Repair
from walstream.formats import DEBEZIUM
from walstream.formats.context import Context, SourceOrigin
from walstream.formats.encodings import JSON
from walstream.kafka import stored_topic
from walstream.postgres.catalog import TableFacts
from walstream.records.encoding import TransactionInfo
from walstream.records.message_router import MessageRules
from walstream.records.router import Router, RoutingRules, is_pattern, spelling
from walstream.sources.debezium_options import (
    debezium_key_form,
    debezium_options,
    registry_of,
)


class NotFull(ConfigError):
    """A table of which old rows are not whole, where they have to be."""


class Routers:
    """The routers of one source, by sink."""

    def __init__(self, config: Config, source: str) -> None:
        self._name = source
        self._source = config.sources[source]
        own = self._source
        self._columns = own.columns if isinstance(own, PostgresSource) else {}
        self.routed: Mapping[str, RoutedSink] = {
            name: found
            for name in config.sources[source].sinks
            if isinstance(found := config.sinks[name], RoutedSink)
        }
        self.configs: Mapping[str, KafkaSinkConfig] = {
            name: found
            for name, found in self.routed.items()
            if isinstance(found, KafkaSinkConfig)
        }
        self.packaged: Mapping[str, PackageSink] = {
            name: found
            for name in config.sources[source].sinks
            if isinstance(found := config.sinks[name], PackageSink)
        }
        self._routers = {
            name: Router(source, RoutingRules.of(found))
            for name, found in self.routed.items()
        }

    def __getitem__(self, sink: str) -> Router:
        return self._routers[sink]

    def beside(self, sink: str) -> set[str]:
        """Name the topics of a sink that hold no ops."""
        config = self.configs[sink]
        spell = spelling(config.format)
        return {
            spell(topic)
            for _, topic in config.asides(self._name)
            if not is_pattern(topic)
        }

    def reserved(self, sink: str) -> frozenset[str]:
        """Name those of them that no record may name: what walstream itself says."""
        asides = self.configs[sink].asides(self._name)
        return frozenset(topic for option, topic in asides if option != "messages")

    def txinfo(self, sink: str) -> TransactionInfo | None:
        """Return where a sink says how many rows a transaction has; None: nowhere."""
        config = self.configs[sink]
        if config.txinfo == "none":
            return None
        return TransactionInfo(
            config.txinfo_topic(self._name),
            config.txinfo_max_rows,
            debezium=config.has_debezium_txinfo,
            resolved_s=config.resolved,
        )

    def single(self, sink: str) -> frozenset[str]:
        """Name those that have one partition: what is in them has an order."""
        topic = self.configs[sink].txinfo_topic(self._name)
        return frozenset({topic} - {""}) | self.compacted(sink)

    def compacted(self, sink: str) -> frozenset[str]:
        """Name those that keep the last record of each key."""
        config = self.configs[sink]
        if not config.is_transactional:
            return frozenset()
        return frozenset({config.positions_topic_of(self._name)})

    def messages(self, sink: str) -> MessageRules | None:
        """Return which logical messages a sink takes; None: none."""
        config, name = self.configs[sink], self._name
        told = config.messages
        if not told.prefixes:
            return None
        return MessageRules(
            tuple(told.prefixes),
            told.topic_in(config.format, name, config.debezium.name or name),
            told.key,
            debezium=told.form_in(config.format) == "debezium",
            max_topics=told.max_topics,
        )

    def context(self, sink: str, origin: str) -> Context:
        """Return what formats and keys know; `origin` is system_identifier/database.

        Raises ConfigError for a source that has none.
        """
        source = self._source
        config = self.routed[sink]
        embed = frozenset(config.embed)
        if isinstance(source, PackageSource):
            own = SourceOrigin(database=self._name, slot=self._name)
            made = debezium_options(config, self._name, self._name)
            return _encoded(Context(own, embed, made), config)
        if not isinstance(source, PostgresSource):
            raise ConfigError(f"a {source.kind} source has no slot: a defect")
        system, _, database = origin.partition("/")
        host = dsn.host(dsn.parse(source.dsn)) or "unknown"
        slot = SourceOrigin(host, database, int(system), source.slot)
        made = debezium_options(config, self._name, database)
        return _encoded(Context(slot, embed, made), config)

    def partition_key(self, schema: str, table: str) -> tuple[str, ...]:
        """Collect the partition key columns of all sinks for a table."""
        mappings = [router.mapping(schema, table) for router in self._routers.values()]
        return tuple(
            sorted(
                {
                    column
                    for mapping in mappings
                    if mapping
                    for column in mapping.partition_key or ()
                }
            )
        )

    def keys(self, sink: str, topic: str) -> str:
        """Spell what decides which partition of a topic a record goes to."""
        config = self.configs[sink]
        form: str = config.key
        if config.format in DEBEZIUM or config.encoding != JSON:
            form = debezium_key_form(config, self._name)
        return stored_topic.keys_text(
            config.partitioner, form, self[sink].partition_keys(topic)
        )

    def problems(
        self, captured: Iterable[TableFacts]
    ) -> Iterator[tuple[TableFacts, ConfigError]]:
        """Name what some record could not have: partition keys, whole old rows."""
        strict = [name for name, config in self.routed.items() if config.strict]
        for table in captured:
            for column in self.partition_key(table.schema, table.name):
                for problem in _partition_key_problems(table, column):
                    yield table, problem
                listed = self._columns.get(table.full_name)
                if listed is not None and column not in listed:
                    yield table, _not_listed(self._name, table, column)
            if strict and not (table.full and table.old_rows_whole):
                yield table, _not_full(table, strict[0])


def _encoded(context: Context, sink: RoutedSink) -> Context:
    """Add how a sink's records are encoded."""
    registry = registry_of(sink)
    if registry is None or not isinstance(sink, KafkaSinkConfig):
        return context  # in JSON
    return replace(context, encoding=sink.encoding, subjects=registry.subjects)


def _partition_key_problems(table: TableFacts, column: str) -> Iterator[ConfigError]:
    """Yield why a column cannot be a partition key, and the cure."""
    subject = f"partition_key column {column!r} of table {table.full_name!r}"
    if column not in table.columns:
        columns = ", ".join(table.columns)
        yield ConfigError(
            f"{subject} is not in the table", hint=f"its columns are {columns}"
        )
        return
    if column not in table.not_null:
        yield _curable(
            f"{subject} may be null",
            f"ALTER TABLE {_quoted(table.schema, table.name)}"
            f" ALTER {_quoted(column)} SET NOT NULL;",
        )
    whole = table.full and table.old_rows_whole
    if not whole and column not in table.identity:
        yield _curable(
            f"{subject} is not in the replica identity, so deletes would lack it",
            make_full(table),
        )


def _not_listed(source: str, table: TableFacts, column: str) -> ConfigError:
    return ConfigError(
        f"partition_key column {column!r} of table {table.full_name!r} is not "
        "published",
        hint=f"add it to the table's list in [sources.{source}.columns]",
    )


def _not_full(table: TableFacts, sink: str) -> ConfigError:
    return NotFull(
        f"table {table.full_name!r} is not under REPLICA IDENTITY FULL, and"
        f" sinks.{sink}.strict is true",
        hint="its readers need complete old rows",
        repair=Repair(sql=make_full(table), then="walstream run"),
    )


def make_full(table: TableFacts) -> str:
    """Write what has a table log whole old rows."""
    name = _quoted(table.schema, table.name)
    if table.kind != "p":
        return f"ALTER TABLE {name} REPLICA IDENTITY FULL;"
    # it does not recurse, and the old row is logged as the leaf's identity says
    tree = "'" + name.replace("'", "''") + "'"
    each = (
        f"FOR part IN SELECT relid FROM pg_partition_tree({tree})"  # noqa: S608 - quoted
        " LOOP EXECUTE format('ALTER TABLE %s REPLICA IDENTITY FULL', part); END LOOP;"
    )
    return f"DO $full$ DECLARE part regclass; BEGIN {each} END $full$;"


def _curable(what: str, sql: str) -> ConfigError:
    return ConfigError(
        what, hint=f"run: {sql}", repair=Repair(sql=sql, then="walstream run")
    )


def _quoted(*names: str) -> str:
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)
