"""Topics beside those of tables: of transactions, heartbeats and logical messages.

Transforms rename them as they rename the topics of tables.
"""

import re
from typing import Final

from walstream.admin.connector.draft import Draft
from walstream.admin.connector.name_pattern import Inexact, patterns, split
from walstream.admin.connector.records import truth
from walstream.admin.connector.topic_route import Untranslatable, route
from walstream.formats.debezium.names import (
    HEARTBEAT_TOPIC,
    heartbeat_topic,
    sanitized,
)
from walstream.records.router import matches

_OFF: Final = frozenset({"", "0", "-1"})


def translate(draft: Draft) -> None:
    """Write txinfo, heartbeat and messages."""
    _transactions(draft)
    _heartbeats(draft)
    _messages(draft)


def _topic(draft: Draft, *parts: str) -> str:
    """Return the topic's name behind the transforms."""
    delimiter = draft.get("topic.delimiter", ".")
    try:
        return sanitized(route(draft.routes, delimiter.join(parts)))
    except Untranslatable:  # which is told by its expression
        return sanitized(delimiter.join(parts))


def _may_be_of_tables(draft: Draft, topic: str) -> bool:
    """Return whether the template may name this topic for some table."""
    template = re.sub(r"\{\w+\}", "*", draft.text("sink", "topic"))
    return matches(template, topic)


def _mapped(draft: Draft) -> list[object]:
    return [one["name"] for one in draft.topics.values()]


def _shared(topic: str) -> str:
    return f"{topic} may be a topic of tables"


def _transactions(draft: Draft) -> None:
    key = "provide.transaction.metadata"
    value = truth(draft, key)
    if draft.get(key) and value is not None:
        draft.put(key, "debezium", "transaction_block", value)
    if value:
        name = draft.get("topic.transaction", "transaction")
        topic = _topic(draft, draft.text("debezium", "name"), name)
        if draft.handlers:
            draft.decide(
                key,
                "BEGIN and END go nowhere: they count what the source sent, and "
                "handlers of the same sink may change that",
            )
        elif _may_be_of_tables(draft, topic) or topic in _mapped(draft):
            draft.decide(key, f"BEGIN and END go nowhere: {_shared(topic)}")
        elif not topic:
            draft.decide(key, "BEGIN and END go nowhere: their topic has no name")
        else:
            draft.put(key, "sink", "txinfo", topic)
    if draft.get("topic.transaction"):
        draft.became("topic.transaction", "txinfo, see provide.transaction.metadata")


def _heartbeats(draft: Draft) -> None:
    key = "heartbeat.interval.ms"
    if draft.get(key) in _OFF:
        if draft.has(key):
            draft.inert(key, "it is off")
    elif not draft.get(key).isdecimal():
        draft.decide(key, "it is not a number")
    elif _may_be_of_tables(draft, heartbeat_topic(draft.text("debezium", "name"))):
        made = heartbeat_topic(draft.text("debezium", "name"))
        draft.decide(key, f"there are none: {_shared(made)}")
    else:
        draft.put(key, "debezium", "heartbeat", f"{draft.get(key)}ms")
        name = draft.text("debezium", "name")
        prefix = draft.get("topic.heartbeat.prefix", HEARTBEAT_TOPIC)
        prefix = draft.get("heartbeat.topics.prefix", prefix)
        wanted, made = _topic(draft, prefix, name), f"{HEARTBEAT_TOPIC}.{name}"
        if wanted != made:
            draft.decide(key, f"they go to {made}, not to {wanted}")


def _messages(draft: Draft) -> None:
    """Write which messages are sent: all, unless a list says otherwise."""
    included, excluded = "message.prefix.include.list", "message.prefix.exclude.list"
    prefixes = ["*"]
    if draft.get(included):
        try:
            lists = [patterns(one) for one in split(draft.get(included))]
        except Inexact as error:
            draft.decide(included, f"{error}: write prefixes in [sinks.kafka.messages]")
            return
        prefixes = [pattern for one in lists for pattern in one]
    elif draft.get(excluded):
        draft.decide(
            excluded,
            "messages reach no topic: write the prefixes that are sent in "
            "[sinks.kafka.messages]",
        )
        return
    if draft.get(excluded):
        draft.inert(excluded, f"{included} is there, and alone counts")
    name = draft.text("debezium", "name")
    topic = _topic(draft, name, "message")
    if _may_be_of_tables(draft, topic):
        keys = (included, "transforms", "topic.prefix", "database.server.name")
        key = next(one for one in keys if draft.has(one))
        draft.decide(
            key,
            f"logical messages are not sent: {_shared(topic)}; if there are any, write "
            "prefixes and a topic in [sinks.kafka.messages]",
        )
        return
    draft.put(included, "messages", "prefixes", prefixes)
    if topic != f"{name}.message":
        draft.tables["messages"]["topic"] = topic
