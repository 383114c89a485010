"""Converters with a registry become an encoding and that registry."""

import tomllib

import pytest

from tests.support.connector import fates, translated, undecided
from walstream.admin.connector.document import write
from walstream.admin.connector.draft import Draft, Fate
from walstream.admin.connector.registry_converter import (
    APICURIO,
    CONFLUENT,
    CONFLUENT_JSON,
)


def both(name: str, **options: str) -> dict[str, str]:
    """Return the options of keys and values; their dots are `_` here."""
    told = {"key.converter": name, "value.converter": name}
    for key, value in options.items():
        for side in ("key", "value"):
            told[f"{side}.converter.{key.replace('_', '.')}"] = value
    return told


def draft_of(told: dict[str, str]) -> Draft:
    return translated(told)[0]


def written(made: Draft) -> str:
    return write(made, state="state", insecure=(False, False))


def test_confluents_converter() -> None:
    made = draft_of(
        both(
            CONFLUENT,
            schema_registry_url="http://localhost:8081",
            auto_register_schemas="false",
        )
        | {
            "value.converter.value.subject.name.strategy": (
                "io.confluent.kafka.serializers.subject.TopicRecordNameStrategy"
            )
        }
    )
    sink = tomllib.loads(written(made))["sinks"]["kafka"]
    assert sink["encoding"] == "avro"
    assert sink["registry"] == {
        "url": "http://localhost:8081",
        "auto_register": False,
        "subjects": "topic_record",
    }
    assert "schemas" not in sink["debezium"]
    assert not undecided(made)


@pytest.mark.parametrize("path", ["/apis/registry/v2", "/apis/registry/v3/"])
def test_apicurios_converter(path: str) -> None:
    told = both(APICURIO) | {
        f"{side}.converter.apicurio.registry.url": f"http://localhost:8080{path}"
        for side in ("key", "value")
    }
    for option in ("as-confluent", "headers.enabled", "use-id"):
        told[f"value.converter.apicurio.registry.{option}"] = "some"
    made = draft_of(told)
    assert not undecided(made)
    url = "http://localhost:8080/apis/ccompat/v7"
    assert made.tables["registry"]["url"] == url
    assert "as-confluent" in fates(made, "value.converter")[Fate.TRANSLATED]


def test_confluents_converter_to_json_schema() -> None:
    told = both(CONFLUENT_JSON, schema_registry_url="http://localhost:8081")
    told["value.converter.decimal.format"] = "NUMERIC"
    told["key.converter.decimal.format"] = "BASE64"
    told["value.converter.object.additional.properties"] = "false"
    made = draft_of(told)
    sink = tomllib.loads(written(made))["sinks"]["kafka"]
    assert sink["encoding"] == "json_schema"
    assert sink["registry"]["url"] == "http://localhost:8081"
    assert undecided(made) == [
        "value.converter.decimal.format",
        "value.converter.object.additional.properties",
    ]
    assert "json_schema" in fates(made, "key.converter")[Fate.TRANSLATED]


def test_what_an_operator_has_to_decide() -> None:
    told = both(CONFLUENT, basic_auth_user_info="me:secret")
    made = draft_of(told)
    assert "value.converter" in undecided(made)
    assert "secret" not in written(made)
    assert "key.converter.basic.auth.user.info" in undecided(made)
    told = both(CONFLUENT, schema_registry_url="http://localhost:1")
    told["key.converter.schema.registry.url"] = "http://localhost:2"
    assert len(undecided(draft_of(told))) == 1
    told = both(CONFLUENT, schema_registry_url="http://localhost:1", other="x")
    assert len(undecided(draft_of(told))) == 2


def test_keys_and_values_are_alike() -> None:
    made = draft_of({"value.converter": CONFLUENT})
    assert undecided(made) == ["value.converter"]
    assert "encoding" not in made.tables["sink"]
