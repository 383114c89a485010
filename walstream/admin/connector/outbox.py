"""EventRouter, the transform of outbox tables, as the handler `outbox`."""

import re
from typing import Final

from walstream.admin.connector.draft import Draft, Table
from walstream.admin.connector.records import JSON_CONVERTERS, truth

EVENT_ROUTER: Final = "io.debezium.transforms.outbox.EventRouter"
_ANY_VALUE: Final = "(?<routedByValue>.*)"
_TEMPLATE: Final = re.compile(r"(?:[A-Za-z0-9._-]|\{value\})+")
_TOPIC: Final = "outbox.event.${routedByValue}"
_COLUMNS: Final = {
    "table.field.event.id": "id",
    "table.field.event.key": "key",
    "table.field.event.payload": "payload",
    "table.field.event.timestamp": "timestamp",
    "route.by.field": "route",
}
_AS_IT_IS: Final = (
    "org.apache.kafka.connect.storage.StringConverter",
    "org.apache.kafka.connect.converters.ByteArrayConverter",
    "io.debezium.converters.ByteBufferConverter",
    "io.debezium.converters.BinaryDataConverter",
)
_UPDATES: Final = {"warn": "warn", "error": "warn", "fatal": "stop"}
_NULLS: Final = {"ignore": "drop", "optional_bytes": "keep"}
_PLACES: Final = {"header": "headers", "envelope": "envelope"}


def translate(draft: Draft, prefix: str) -> None:
    """Write the handler; options begin with the `prefix` of the transform."""
    draft.became(f"{prefix}type", "handler outbox")
    handler: Table = {"kind": "outbox", "tables": draft.chosen or ["*"]}
    for name, own in _COLUMNS.items():
        _put(draft, handler, f"{prefix}{name}", own)
    _topic(draft, handler, prefix)
    _placement(draft, handler, f"{prefix}table.fields.additional.placement")
    _forms(draft, handler, prefix)
    _choice(draft, handler, f"{prefix}table.op.invalid.behavior", "on_update", _UPDATES)
    _choice(
        draft, handler, f"{prefix}table.json.payload.null.behavior", "nulls", _NULLS
    )
    key = f"{prefix}route.tombstone.on.empty.payload"
    if truth(draft, key):
        handler["empty_payload"] = "tombstone"
    if draft.has(key):
        draft.became(key, f"handler outbox: empty_payload, {draft.get(key)}")
    key = f"{prefix}table.fields.additional.error.on.missing"
    if draft.has(key):
        draft.inert(key, "a column that is missing is refused at the start")
    key = f"{prefix}table.field.event.type"
    if draft.has(key):
        draft.inert(key, "Debezium does not use it either")
    for key in draft.file.entries:
        if key.startswith(f"{prefix}tracing."):
            draft.inert(key, "walstream writes no traces")
    draft.handlers.append(handler)


def _put(draft: Draft, handler: Table, key: str, name: str) -> None:
    if draft.get(key):
        handler[name] = draft.get(key)
        draft.became(key, f"handler outbox: {name} = {draft.get(key)}")


def _choice(
    draft: Draft, handler: Table, key: str, name: str, words: dict[str, str]
) -> None:
    value = draft.get(key).lower()
    if value in words:
        handler[name] = words[value]
        draft.became(key, f"handler outbox: {name} = {words[value]}")
    elif value:
        draft.decide(key, f"{value!r} is none of {', '.join(words)}")


def _topic(draft: Draft, handler: Table, prefix: str) -> None:
    """Write the template of topics, of the column's value as a whole."""
    key = f"{prefix}route.topic.replacement"
    written = draft.get(key, _TOPIC).replace("${routedByValue}", "{value}")
    other = draft.get(f"{prefix}route.topic.regex", _ANY_VALUE)
    if other != _ANY_VALUE or not _TEMPLATE.fullmatch(written):
        for one in (key, f"{prefix}route.topic.regex"):
            if draft.has(one):
                draft.decide(one, "write topic of the handler, of the whole {value}")
        return
    handler["topic"] = written
    for one in (key, f"{prefix}route.topic.regex"):
        if draft.has(one):
            draft.became(one, f"handler outbox: topic = {written}")


def _placement(draft: Draft, handler: Table, key: str) -> None:
    """Write where other columns go: column:header:alias, column:partition."""
    placed: dict[str, dict[str, str]] = {}
    for part in draft.get(key).split(","):
        column, _, rest = part.strip().partition(":")
        place, _, alias = rest.partition(":")
        if not column:
            continue
        if place.lower() == "partition":
            handler["partition"] = column
        elif place.lower() in _PLACES:
            placed.setdefault(_PLACES[place.lower()], {})[alias or column] = column
        else:
            draft.decide(
                key, f"{part.strip()!r} names no header, envelope or partition"
            )
            return
    handler.update(placed)
    if draft.get(key):
        draft.became(key, "handler outbox: headers, envelope and partition")


def _forms(draft: Draft, handler: Table, prefix: str) -> None:
    """Write the forms of key and value, which the converters decide."""
    expands = truth(draft, f"{prefix}table.expand.json.payload")
    if draft.has(f"{prefix}table.expand.json.payload"):
        draft.became(
            f"{prefix}table.expand.json.payload", "handler outbox: payload_form"
        )
    schemas: list[bool] = []
    for side, name in (("key", "key_form"), ("value", "payload_form")):
        key = f"{side}.converter"
        form = _form(draft, key, expands=bool(expands) and side == "value")
        if not form:
            continue
        handler[name] = form
        draft.became(key, f"handler outbox: {name} = {form}")
        if draft.get(key) in JSON_CONVERTERS:
            wanted = truth(draft, f"{key}.schemas.enable", default=True)
            schemas.append(wanted is not False)
        for one in draft.file.entries:
            if one == f"{key}.schemas.enable":
                draft.became(one, "handler outbox: schemas")
            elif one.startswith(f"{key}."):
                draft.inert(one, f"of {draft.get(key).rpartition('.')[2]}")
    if len(set(schemas)) > 1:
        draft.decide(
            "value.converter",
            "schemas is for keys and values alike: false is written",
        )
    elif schemas and schemas[0]:
        handler["schemas"] = True
        handler["schema_prefix"] = draft.text("debezium", "name")
    draft.tables["debezium"]["schemas"] = False


def _form(draft: Draft, key: str, *, expands: bool) -> str:
    """Return what a converter makes of a text; "": that is not known."""
    converter = draft.get(key)
    if converter in JSON_CONVERTERS:
        if key.startswith("key"):
            return "json"
        return "expand" if expands else "json_string"
    if converter in _AS_IT_IS and not expands:
        return "text" if key.startswith("key") else "raw"
    named = converter.rpartition(".")[2] or "no converter is named"
    draft.decide(key, f"{named}: write key_form and payload_form of the handler")
    return ""
