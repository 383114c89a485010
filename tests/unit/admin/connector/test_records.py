"""Records keep their form, and what cannot keep it is told."""

import pytest

from tests.support.connector import JSON, draft, fates, translated, undecided
from walstream.admin.connector.draft import Fate
from walstream.admin.connector.records import choices


def test_modes_are_debeziums_own() -> None:
    made = draft(
        decimal_handling_mode="String",
        time_precision_mode="connect",
        interval_handling_mode="string",
        hstore_handling_mode="map",
        binary_handling_mode="base64-url-safe",
        schema_name_adjustment_mode="avro",
        field_name_adjustment_mode="avro_unicode",
        include_unknown_datatypes="true",
        unavailable_value_placeholder="hex:3f3f",
        money_fraction_digits="3",
        tombstones_on_delete="false",
    )
    assert made.tables["debezium"] == {
        "name": "app",
        "decimal": "string",
        "time": "connect",
        "interval": "string",
        "hstore": "map",
        "binary": "base64-url-safe",
        "adjust": "avro",
        "adjust_fields": "avro_unicode",
        "unknown": True,
        "unavailable": "??",
        "money_digits": 3,
        "schemas": True,
    }
    assert made.tables["sink"]["tombstones"] is False
    assert not undecided(made)


def test_a_mode_that_walstream_lacks_is_told() -> None:
    made = draft(time_precision_mode="structured", money_fraction_digits="x")
    assert undecided(made) == ["time.precision.mode", "money.fraction.digits"]
    assert "adaptive" in choices("time")


def test_operations_that_are_skipped() -> None:
    assert draft(skipped_operations="t").tables["sink"]["on_truncate"] == "skip"
    assert draft(skipped_operations="none").tables["sink"]["on_truncate"] == "send"
    made = draft(skipped_operations="c, d")
    assert made.handlers == [{"kind": "filter", "operations": ["update", "truncate"]}]
    assert made.tables["sink"]["on_truncate"] == "send"
    assert undecided(draft(skipped_operations="x")) == ["skipped.operations"]


@pytest.mark.parametrize(
    ("mode", "backfill", "same"),
    [
        ("initial", "initial", True),
        ("initial_only", "only", True),
        ("no_data", "never", True),
        ("never", "never", True),
        ("always", "initial", False),
        ("when_needed", "initial", False),
        ("custom", "initial", False),
        ("misspelt", "initial", False),
    ],
)
def test_snapshots_are_backfills(mode: str, backfill: str, same: bool) -> None:
    made = draft(snapshot_mode=mode)
    assert made.tables["source"]["backfill"] == backfill
    assert (undecided(made) == []) is same


def test_schemas_are_those_of_the_converters() -> None:
    def schemas(key: str, value: str) -> tuple[bool, list[str]]:
        made = draft(
            key_converter_schemas_enable=key, value_converter_schemas_enable=value
        )
        return made.tables["debezium"]["schemas"] is True, undecided(made)

    assert schemas("", "") == (True, [])
    assert schemas("false", "false") == (False, [])
    assert schemas("false", "true") == (False, ["value.converter.schemas.enable"])


def test_another_encoding_is_told() -> None:
    made, _ = translated(
        {
            "value.converter": "io.confluent.connect.avro.AvroConverter",
            "value.converter.schema.registry.url": "http://r:8081",
        }
    )
    assert undecided(made) == ["value.converter"]
    assert "in JSON, in Avro or" in fates(made, "value.converter")[Fate.TO_DECIDE]


def test_options_of_json() -> None:
    made, _ = translated(
        {
            "value.converter": JSON,
            "value.converter.replace.null.with.default": "false",
            "value.converter.decimal.format": "NUMERIC",
            "key.converter.replace.null.with.default": "true",
            "key.converter.decimal.format": "base64",
            "key.converter.schemas.cache.size": "9",
        }
    )
    assert undecided(made) == [
        "value.converter.decimal.format",
        "key.converter.replace.null.with.default",
    ]


def test_what_is_neither_true_nor_false_is_told() -> None:
    assert undecided(draft(tombstones_on_delete="yes")) == ["tombstones.on.delete"]


def test_a_null_that_connect_replaces_is_told() -> None:
    assert "stays null" in fates(draft(), "value.converter")[Fate.TRANSLATED]
    kept, _ = translated({"value.converter.replace.null.with.default": "false"})
    assert "stays null" not in fates(kept, "value.converter")[Fate.TRANSLATED]
