"""Table -> topic and key columns, or drop: pure.

A mapping by `schema.table` comes first, then one by the bare table name, then the first
pattern that matches, then the sink's template, then its fallback topic; a table with
none of them is dropped and counted.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Self

from walstream.config.sink import RoutedSink
from walstream.errors import ConfigError, HistoryError
from walstream.formats import DEBEZIUM
from walstream.formats.context import SourceOrigin
from walstream.op import Table
from walstream.records.key import KEY_FORMS, KeyForm

_MAX_TOPIC: Final = 249  # Kafka's limit
_WILD: Final = frozenset("*?")
_ILLEGAL: Final = re.compile(rb"[^a-zA-Z0-9._-]")
_ILLEGAL_IN_TEXT: Final = re.compile(r"[^a-zA-Z0-9._-]")
_UNCLEAR: Final = re.compile(  # and a _ that would look like a spelled byte's
    rb"[^a-zA-Z0-9._-]|_(?=x[0-9A-F]{2}[^a-zA-Z0-9.-])"
)
_FIRST_PLANE: Final = 0xFFFF


def matches(pattern: str, text: str) -> bool:
    """Match plain text against a pattern of `*` and `?`, case-sensitively."""
    return bool(_compile(pattern).fullmatch(text))


def is_pattern(text: str) -> bool:
    """Return whether it has a wildcard."""
    return not _WILD.isdisjoint(text)


@lru_cache(maxsize=1024)  # those of a configuration, asked for each table
def _compile(pattern: str) -> re.Pattern[str]:
    parts = {"*": ".*", "?": "."}
    return re.compile(
        "".join(parts.get(char, re.escape(char)) for char in pattern), re.DOTALL
    )


def topic_part(text: str) -> str:
    """Spell a name with what a topic's name can hold: other bytes become `_xHH_`."""
    return _ILLEGAL.sub(_spelled, text.encode()).decode()


def distinct_part(text: str) -> str:
    """Spell a value likewise, but no two of them alike."""
    return _UNCLEAR.sub(_spelled, text.encode()).decode()


def _spelled(found: re.Match[bytes]) -> bytes:
    return b"_x%02X_" % found.group()[0]


def underscored(text: str) -> str:
    """Spell a name as Debezium does: each other character becomes `_`."""
    # Java counts a character beyond the first plane as two
    return _ILLEGAL_IN_TEXT.sub(
        lambda found: "_" * (1 + (ord(found.group()) > _FIRST_PLANE)), text
    )


def spelling(sink_format: str) -> Callable[[str], str]:
    """Return how a format spells names in topics."""
    return underscored if sink_format in DEBEZIUM else topic_part


@dataclass(frozen=True, slots=True)
class TopicMapping:
    """One entry of a sink's table -> topic map."""

    topic: str
    partition_key: tuple[str, ...] | None = None  # None: the row key


@dataclass(frozen=True, slots=True)
class RoutingRules:
    """Routing rules of a sink."""

    mappings: Mapping[str, TopicMapping]  # by table or pattern, see `Router.mapping`
    template: str  # with {source}, {schema}, {table}; "" = only mapped tables
    fallback: str  # "" = drop and count
    key: str = "json"  # of KEY_FORMS
    strict: bool = False  # every table must be mapped
    spell: Callable[[str], str] = topic_part  # of names in the template's topics

    @classmethod
    def of(cls, sink: RoutedSink) -> Self:
        """Return the rules of a configured sink."""
        mappings = {
            table: TopicMapping(
                mapped.name,
                None if mapped.partition_key is None else tuple(mapped.partition_key),
            )
            for table, mapped in sink.topics.items()
        }
        return cls(
            mappings,
            sink.topic,
            sink.fallback_topic,
            sink.key,
            sink.strict,
            spelling(sink.format),
        )


@dataclass(frozen=True, slots=True)
class Route:
    """Topic of one table's ops, and the columns of their key."""

    topic: str
    key: KeyForm


class IllegalTopic(ConfigError):
    """A table's topic would have a name that Kafka does not allow."""


class Unmapped(ConfigError):
    """A table without a mapping, where each has to have one."""


class Router:
    """Routes the tables of one source for one sink."""

    def __init__(self, source: str, rules: RoutingRules) -> None:
        self._source = source
        self._rules = rules
        self._patterns = [
            (_compile(key), "." in key, mapping)
            for key, mapping in rules.mappings.items()
            if is_pattern(key)
        ]
        self._mapped = {rules.fallback} | {one.topic for one in rules.mappings.values()}
        self._owners: dict[str, tuple[str, str]] = {}  # of template topics

    def mapping(self, schema: str, name: str) -> TopicMapping | None:
        """Find a table's entry in the map: its full name, its bare name, a pattern.

        Patterns are tried in their order; one without a dot is of bare names.
        """
        mappings = self._rules.mappings
        full_name = f"{schema}.{name}"
        found = mappings.get(full_name) or mappings.get(name)
        if found is None:
            for pattern, is_full, mapping in self._patterns:
                if pattern.fullmatch(full_name if is_full else name):
                    return mapping
        return found

    def partition_keys(self, topic: str) -> dict[str, tuple[str, ...]]:
        """Return the partition keys of a topic's tables, by table or pattern."""
        return {
            table: mapping.partition_key
            for table, mapping in self._rules.mappings.items()
            if mapping.topic == topic and mapping.partition_key is not None
        }

    def topic(self, schema: str, name: str) -> str | None:
        """Name a table's topic; None: nothing takes it.

        Raises ConfigError when two tables would meet in one topic by their spelling,
        or when a name is longer than Kafka allows; Unmapped where it has to be mapped.
        """
        if mapping := self.mapping(schema, name):
            return mapping.topic
        if self._rules.strict:
            full_name = f"{schema}.{name}"
            raise Unmapped(
                f"table {full_name!r} is published and has no mapping, and strict is"
                " true",
                hint=f"name its topic in [sinks.NAME.topics.{full_name!r}], or remove "
                "it from the publication",
            )
        if not self._rules.template:
            return self._rules.fallback or None
        spell = self._rules.spell
        topic = self._rules.template.format(
            source=self._source, schema=spell(schema), table=spell(name)
        )
        plain = self._rules.template.format(
            source=self._source, schema=schema, table=name
        )
        self._check_template_topic(topic, plain, f"{schema}.{name}")
        return topic

    def serves(self, topic: str) -> bool:
        """Return whether ops go to a topic, of tables that were asked for so far."""
        return topic in self._owners or topic in self._mapped

    def _check_template_topic(self, topic: str, plain: str, full_name: str) -> None:
        """Compare with whose topic it is; `plain` is its name as if all were legal."""
        if len(topic) > _MAX_TOPIC or topic in (".", ".."):
            raise IllegalTopic(
                f"table {full_name!r} would go to the topic {topic!r}, which Kafka"
                f" does not allow (1 to {_MAX_TOPIC} characters, not . or ..)",
                hint=f"name one in [sinks.NAME.topics.{full_name!r}]",
            )
        other, owner = self._owners.setdefault(topic, (plain, full_name))
        if other != plain:
            raise ConfigError(
                f"tables {owner!r} and {full_name!r} would share the topic {topic!r}",
                hint="name a topic for one of them in"
                f" [sinks.NAME.topics.{full_name!r}]",
            )

    def route(self, table: Table, origin: SourceOrigin) -> Route | None:
        """Find a table's topic and key; None: drop.

        Raises HistoryError when a column of its partition key is not in the table.
        """
        topic = self.topic(table.schema, table.name)
        if topic is None:
            return None
        mapping = self.mapping(table.schema, table.name)
        indexes = table.key
        if mapping and mapping.partition_key is not None:
            indexes = _indexes(table, mapping.partition_key)
        return Route(topic, KEY_FORMS[self._rules.key](table, indexes, origin))


def _indexes(table: Table, names: Iterable[str]) -> tuple[int, ...]:
    columns = table.source_columns or table.columns
    missing = [name for name in names if name not in columns]
    if missing:
        raise HistoryError(
            f"partition_key of table {table.full_name!r}: it has no column "
            f"{', '.join(missing)}",
            hint="correct partition_key in the sink's topics, then: walstream run",
        )
    return tuple(sorted({columns.index(name) for name in names}))
