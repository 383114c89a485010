"""EventRouter becomes the handler outbox; converters decide its forms."""

import tomllib
from typing import Final

import pytest

from tests.support.connector import JSON, fates, translated, undecided
from walstream.admin.connector.document import write
from walstream.admin.connector.draft import Draft, Fate, Table
from walstream.admin.connector.outbox import EVENT_ROUTER

STRING: Final = "org.apache.kafka.connect.storage.StringConverter"
TEXTS: Final = {"key.converter": STRING, "value.converter": STRING}


def routed(options: dict[str, str], **more: str) -> tuple[Table, Draft]:
    draft, _ = translated(
        {
            "table.include.list": "public.outboxevent",
            "transforms": "outbox",
            "transforms.outbox.type": EVENT_ROUTER,
            **{f"transforms.outbox.{key}": value for key, value in options.items()},
            **more,
        }
    )
    (handler,) = draft.handlers
    return handler, draft


def test_columns_and_places_are_those_of_the_router() -> None:
    handler, draft = routed(
        {
            "table.field.event.id": "uid",
            "table.field.event.key": "agg",
            "table.field.event.timestamp": "at",
            "route.by.field": "kind",
            "route.topic.replacement": "${routedByValue}.events",
            "table.fields.additional.placement": "type:header:eventType, p:partition,"
            "t:header",
            "route.tombstone.on.empty.payload": "true",
            "table.op.invalid.behavior": "fatal",
            "table.fields.additional.error.on.missing": "true",
            "tracing.operation.name": "x",
        },
        **TEXTS,
    )
    assert handler == {
        "kind": "outbox",
        "tables": ["public.outboxevent"],
        "id": "uid",
        "key": "agg",
        "timestamp": "at",
        "route": "kind",
        "topic": "{value}.events",
        "headers": {"eventType": "type", "t": "t"},
        "partition": "p",
        "key_form": "text",
        "payload_form": "raw",
        "on_update": "stop",
        "empty_payload": "tombstone",
    }
    assert not undecided(draft)
    text = write(draft, state="s", insecure=(False, False))
    assert tomllib.loads(text)["sinks"]["kafka"]["handlers"] == [handler]


@pytest.mark.parametrize(
    ("converter", "expand", "schemas", "form"),
    [
        (STRING, "false", "", "raw"),
        ("io.debezium.converters.BinaryDataConverter", "", "", "raw"),
        (JSON, "false", "false", "json_string"),
        (JSON, "true", "false", "expand"),
        (JSON, "true", "true", "expand"),
    ],
)
def test_converters_decide_the_forms(
    converter: str, expand: str, schemas: str, form: str
) -> None:
    handler, draft = routed(
        {"table.expand.json.payload": expand},
        **{
            "key.converter": STRING,
            "value.converter": converter,
            "value.converter.schemas.enable": schemas,
        },
    )
    assert (handler["key_form"], handler["payload_form"]) == ("text", form)
    assert handler.get("schemas", False) is (schemas == "true")
    assert not undecided(draft)


def test_what_the_handler_cannot_do_is_told() -> None:
    _, draft = routed(
        {
            "route.topic.regex": "(.*)-(.*)",
            "route.topic.replacement": "$1",
            "table.fields.additional.placement": "a:nowhere",
            "table.op.invalid.behavior": "x",
            "table.field.event.schema.version": "v",
        },
        **{"key.converter": STRING, "value.converter": "io.confluent.AvroConverter"},
    )
    assert undecided(draft) == [
        "value.converter",
        "transforms.outbox.route.topic.regex",
        "transforms.outbox.route.topic.replacement",
        "transforms.outbox.table.fields.additional.placement",
        "transforms.outbox.table.op.invalid.behavior",
        "transforms.outbox.table.field.event.schema.version",
    ]


def test_schemas_are_for_keys_and_values_alike() -> None:
    converters = {
        "key.converter": JSON,
        "value.converter": JSON,
        "key.converter.schemas.enable": "true",
        "value.converter.schemas.enable": "false",
    }
    handler, draft = routed({}, **converters)
    assert "schemas" not in handler
    assert Fate.TO_DECIDE in fates(draft, "value.converter")


def test_a_topic_that_kafka_refuses_is_to_decide() -> None:
    handler, made = routed({"route.topic.replacement": "a b.${routedByValue}"}, **TEXTS)
    assert undecided(made) == ["transforms.outbox.route.topic.replacement"]
    assert "topic" not in handler
