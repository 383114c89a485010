"""What a sink's section becomes: every option, by its own name."""

from dataclasses import fields

from walstream.config.debezium import Debezium
from walstream.config.sink import KafkaSinkConfig, LogSink
from walstream.formats.debezium import DebeziumOptions
from walstream.sources.debezium_options import debezium_key_form, debezium_options


def sink(**debezium: object) -> LogSink:
    return LogSink.model_validate(
        {"kind": "log", "format": "debezium", "debezium": debezium}
    )


def test_another_format_has_none() -> None:
    plain = LogSink.model_validate({"kind": "log"})
    assert debezium_options(plain, "app", "shop") is None


def test_ops_with_schemas_have_names_that_avro_takes() -> None:
    told = {"kind": "kafka", "producer": {"bootstrap.servers": "localhost:1"}}
    assert debezium_options(KafkaSinkConfig.model_validate(told), "app", "") is None
    encoded = KafkaSinkConfig.model_validate({**told, "encoding": "avro"})
    made = debezium_options(encoded, "app", "shop")
    assert made is not None
    assert (made.name, made.adjust, made.adjust_fields) == ("app", "avro", "avro")
    assert made.all_optional
    assert made.position_header


def test_names_come_from_the_source_unless_they_are_set() -> None:
    made = debezium_options(sink(), "app", "shop")
    assert made is not None
    assert (made.name, made.database) == ("app", "shop")
    assert made.version.startswith("walstream ")
    named = debezium_options(sink(name="dbz", version="3.5.0.Final"), "app", "shop")
    assert named is not None
    assert (named.name, named.version) == ("dbz", "3.5.0.Final")


def test_no_option_is_forgotten() -> None:
    other = {
        "schemas": True,
        "decimal": "string",
        "time": "connect",
        "interval": "string",
        "hstore": "map",
        "binary": "hex",
        "unknown": True,
        "unavailable": "?",
        "money_digits": 3,
        "adjust": "avro",
        "adjust_fields": "avro_unicode",
        "transaction_block": True,
        "position_header": False,
        "deletes": "rewrite",
        "add_fields": ["op"],
        "add_prefix": "_",
    }
    beside = {"heartbeat"}  # the sink's own, not of its records
    assert {*other, "name", "version"} | beside == Debezium.model_fields.keys()
    made = debezium_options(sink(**other), "app", "shop")
    assert made is not None
    plain = DebeziumOptions("app")
    elsewhere = {"name", "database", "all_optional", "validated"}
    same = {one.name for one in fields(plain) if one.name not in elsewhere}
    for name in same:
        assert getattr(made, name) != getattr(plain, name), name
    assert made.add_fields == ("op",)


def test_what_moves_keys_is_told_by_their_form() -> None:
    plain = debezium_key_form(sink(), "app")
    same = sink(version="x", unknown=True, name="dbz")
    assert debezium_key_form(same, "app") == plain
    others = [sink(schemas=True), sink(decimal="string"), sink(adjust_fields="avro")]
    forms = {debezium_key_form(one, "app") for one in others}
    assert len({plain, *forms}) == len(others) + 1
    schemas = debezium_key_form(sink(schemas=True), "app")
    assert debezium_key_form(sink(schemas=True, name="dbz"), "app") != schemas


def encoded(**registry: object) -> KafkaSinkConfig:
    told = {"kind": "kafka", "producer": {}, "format": "debezium", "encoding": "avro"}
    return KafkaSinkConfig.model_validate({**told, "registry": registry})


def test_a_registry_says_which_fields_may_be_null() -> None:
    for optional, wanted in (("catalog", False), ("all", True)):
        made = debezium_options(encoded(optional=optional), "app", "shop")
        assert made is not None
        assert made.all_optional is wanted


def test_keys_with_ids_are_other_keys() -> None:
    """Their schemas' names are in the ids, and the ids in the keys."""
    plain = debezium_key_form(sink(adjust="avro", adjust_fields="avro"), "app")
    assert debezium_key_form(encoded(), "app") != plain
    assert debezium_key_form(encoded(), "app") != debezium_key_form(encoded(), "b")
