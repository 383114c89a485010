"""Topics: the names that Debezium's tables have, and how missing ones are created."""

import re
from typing import Final

from walstream.admin.connector.draft import Draft
from walstream.admin.connector.topic_route import (
    TopicRoute,
    Untranslatable,
    route,
    template,
)
from walstream.formats.debezium.names import sanitized
from walstream.records.router import topic_part

_STRATEGY: Final = "io.debezium.schema.SchemaTopicNamingStrategy"
_DEFAULTS: Final = "topic.creation.default."
_PREFIX: Final = re.compile("[a-zA-Z0-9._-]+")
_OF_GROUPS: Final = (
    "topics that do not exist yet get the default group's settings: create them before"
)


def translate(draft: Draft) -> None:
    """Write topic, topics and the settings of topics that are created."""
    _names(draft)
    _creation(draft)


def _names(draft: Draft) -> None:
    name = draft.text("debezium", "name")
    prefix = sanitized(name)
    delimiter = draft.get("topic.delimiter", ".")
    _strategy(draft)
    _delimiter(draft, delimiter)
    try:
        whole = "" if draft.chosen is not None else _template(draft, prefix, delimiter)
        _mapped(draft, delimiter, whole, draft.routes)
    except Untranslatable as error:
        _undecided(draft, str(error))
        whole = "" if draft.chosen is not None else _plain(prefix, delimiter)
        _mapped(draft, delimiter, whole, [])


def _strategy(draft: Draft) -> None:
    key = "topic.naming.strategy"
    if draft.get(key, _STRATEGY) == _STRATEGY:
        if draft.has(key):
            draft.became(key, "the topics of tables")
        return
    draft.decide(
        key,
        f"{draft.get(key).rpartition('.')[2]}: topics are written as prefix, schema "
        "and table; name others in topic, or in [sinks.kafka.topics.TABLE]",
    )


def _delimiter(draft: Draft, delimiter: str) -> None:
    key = "topic.delimiter"
    if not draft.has(key):
        return
    if delimiter == ".":
        draft.became(key, "the topics of tables")
    else:
        draft.decide(key, "topics have it; names in schemas keep their dots")


def _template(draft: Draft, prefix: str, delimiter: str) -> str:
    """Return the template of all tables; raises Untranslatable."""
    if not draft.routes:
        return _plain(prefix, delimiter)
    found = template(draft.routes, prefix) if delimiter == "." else None
    if found and ("{table}" in found or "{" not in found):
        return found
    raise Untranslatable("")


def _mapped(draft: Draft, delimiter: str, whole: str, routes: list[TopicRoute]) -> None:
    """Write the template, if tables have one, and the topics of single tables."""
    draft.topics.clear()
    sink = draft.tables["sink"]
    if whole and "{" not in whole:
        draft.topics["*.*"] = {"name": whole}
        whole = ""
    sink["topic"] = whole
    key = "topic.prefix" if draft.has("topic.prefix") else "database.server.name"
    draft.became(key, f'[{draft.header("sink")}] topic = "{sink["topic"]}"')
    for table in draft.chosen or ():
        draft.topics[table] = {"name": _topic(draft, delimiter, table, routes)}
    for table, columns in draft.partition_keys.items():
        if draft.chosen is not None and table not in draft.chosen:
            continue
        if table not in draft.topics:
            draft.topics[table] = {"name": _topic(draft, delimiter, table, routes)}
        draft.topics[table]["partition_key"] = columns


def _topic(draft: Draft, delimiter: str, table: str, routes: list[TopicRoute]) -> str:
    name = draft.text("debezium", "name")
    found = route(routes, sanitized(delimiter.join((name, *table.split(".", 1)))))
    if not found or topic_part(found) != found:
        raise Untranslatable(f"{table} would go to the topic {found!r}")
    return found


def _undecided(draft: Draft, why: str) -> None:
    """Report that the topics are left as they are without the transforms."""
    for key in draft.file.entries:
        if key.startswith("transforms.") and key.endswith((".regex", "topic.regex")):
            draft.decide(
                key,
                f"{why or 'it is not of dots alone'}: no template says the same, and "
                "topics keep the names of their tables; name each in "
                "[sinks.kafka.topics.TABLE]",
            )


def _plain(prefix: str, delimiter: str) -> str:
    return f"{prefix}{delimiter}{{schema}}{delimiter}{{table}}"


def _creation(draft: Draft) -> None:
    for key in draft.file.entries:
        name = key.removeprefix(_DEFAULTS)
        if key == "topic.creation.enable":
            draft.put(key, "sink", "create_topics", draft.get(key).lower() != "false")
        elif key == f"{_DEFAULTS}partitions":
            _number(draft, key, "topic_partitions")
        elif key == f"{_DEFAULTS}replication.factor":
            _number(draft, key, "topic_replication")
        elif name in {"include", "exclude"}:
            draft.inert(key, "the default is of all topics")
        elif name != key:
            draft.put(key, "topic_config", name, draft.get(key))
        elif key.startswith("topic.creation.") and draft.get(key):
            draft.decide(key, _OF_GROUPS)


def _number(draft: Draft, key: str, name: str) -> None:
    """Write a number; -1 is the broker's default, as 0 is in walstream."""
    value = draft.get(key)
    if not re.fullmatch("-?[0-9]{1,7}", value):
        draft.decide(key, "it is not a number")
        return
    draft.put(key, "sink", name, max(int(value), 0))
