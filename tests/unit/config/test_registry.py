"""Registries: who they are, and what goes with an encoding."""

from typing import Any

import pytest
from pydantic import ValidationError

from walstream.config.registry import Registry
from walstream.config.registry_rules import check_encoding
from walstream.config.secret import collect, mask_value
from walstream.config.sink import KafkaSinkConfig


def sink(**told: Any) -> KafkaSinkConfig:
    given = {"kind": "kafka", "producer": {}, "format": "debezium", **told}
    return KafkaSinkConfig.model_validate(given)


def problems(**told: Any) -> list[str]:
    found = check_encoding("s", sink(**told))
    return [f"{'.'.join(map(str, one.path))} {one.complaint}" for one in found]


REGISTRY = {"url": "http://localhost:8081"}
AVRO = {"encoding": "avro", "registry": REGISTRY}


@pytest.mark.parametrize(
    ("told", "problem"),
    [
        (AVRO, ""),
        ({}, ""),
        ({**AVRO, "format": "debezium_row"}, ""),
        ({"registry": REGISTRY}, "sinks.s.registry has no effect"),
        ({**AVRO, "encoding": "json_schema"}, ""),
        ({**AVRO, "encoding": "protobuf"}, ""),
        ({**AVRO, "format": "op"}, ""),
        ({**AVRO, "format": "op", "registry": {}}, "sinks.s.registry.url is missing"),
        ({**AVRO, "format": "op", "key": "pkey"}, "sinks.s.key has no effect"),
        ({**AVRO, "format": "event"}, "sinks.s.encoding"),
        ({**AVRO, "format": "row"}, ""),
        ({**AVRO, "format": "row", "registry": {}}, "sinks.s.registry.url is missing"),
        ({**AVRO, "encoding": "json_schema", "format": "op"}, ""),
        ({"encoding": "json_schema"}, "sinks.s.registry.url is missing"),
        ({"encoding": "avro"}, "sinks.s.registry.url is missing"),
        ({**AVRO, "debezium": {"schemas": True}}, "sinks.s.debezium.schemas"),
        ({**AVRO, "debezium": {"adjust": "none"}}, "sinks.s.debezium.adjust"),
        ({**AVRO, "registry": {"url": "here"}}, "sinks.s.registry.url is not"),
        # the beginning of a password with / in it would be the port
        (
            {**AVRO, "registry": {"url": "http://me:s3cret/x@localhost:1"}},
            "sinks.s.registry.url is not the address",
        ),
        ({**AVRO, "registry": {"url": "http://far:1"}}, "not this machine"),
        ({**AVRO, "registry": {"url": "http://far:1", "insecure": True}}, ""),
        ({**AVRO, "registry": {"url": "https://far:1"}}, ""),
        (
            {**AVRO, "registry": {"url": "http://localhost:1,http://far:1"}},
            "far is not this machine",
        ),
        (
            {
                **AVRO,
                "registry": {
                    "url": "https://far:1",
                    "client": {"ssl.ca.location": False},
                },
            },
            "not verified",
        ),
        (
            {**AVRO, "registry": {**REGISTRY, "on_incompatible": "other"}},
            "on_incompatible",
        ),
        ({**AVRO, "registry": {**REGISTRY, "on_incompatible": "{subject}-2"}}, ""),
    ],
)
def test_what_does_not_go_together_is_told(told: dict[str, Any], problem: str) -> None:
    found = problems(**told)
    if not problem:
        assert found == []
    else:
        (one,) = found
        assert problem in one
        assert "s3cret" not in one


def test_names_are_spelt_for_avro_unless_somebody_says_so() -> None:
    assert sink(**AVRO).debezium.adjust_fields == "avro"
    assert sink(**AVRO, debezium={"adjust": "avro_unicode"}).debezium.adjust == (
        "avro_unicode"
    )
    assert sink().debezium.adjust == "none"
    assert sink(**{**AVRO, "encoding": "json_schema"}).debezium.adjust == "none"


@pytest.mark.parametrize(
    "told", [{"subjects": "table"}, {"compatibility": "SOME"}, {"urls": "x"}]
)
def test_other_words_are_refused(told: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        Registry.model_validate({**REGISTRY, **told})


def test_no_password_is_shown() -> None:
    told = Registry(
        url="https://me:first@r:8081/api, https://q:8081",
        client={
            "basic.auth.user.info": "me:second",
            "proxy": "http://me:third@p:1",
            "timeout": "3",
        },
    )
    assert told.identity == "https://r:8081/api,https://q:8081"
    found = set(collect(told.model_dump()))
    assert {
        "first",
        "me:second",
        "second",
        "bWU6c2Vjb25k",
        "bWU6dGhpcmQ=",
        "third",
    } <= found
    assert mask_value("proxy", "http://me:third@p:1") == "http://me:***@p:1"
    assert mask_value("proxy", "me:third@p:1") == "me:***@p:1"
    assert mask_value("basic.auth.user.info", "me:second") == "***"
    assert "second" not in repr(told)
