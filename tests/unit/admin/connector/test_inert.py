"""Every property of Debezium 3.5 is known, and its defaults leave nothing to decide."""

import json
from pathlib import Path
from typing import Final

import pytest

from tests.support.connector import (
    JSON,
    PLAIN,
    draft,
    fates,
    translated,
    undecided,
)
from walstream.admin.connector.draft import Draft, Fate

FOLDER: Final = Path(__file__).parents[3] / "data" / "debezium"
PROPERTIES: Final = json.loads((FOLDER / "properties.json").read_text("utf-8"))
UNKNOWN: Final = ("does not know", "no property that walstream knows")


def known(section: str, prefix: str = "") -> dict[str, str | None]:
    return {
        prefix + name: default
        for name, default in PROPERTIES[section].items()
        if "(" not in name and prefix + name not in PLAIN
    }


def translated_with(values: dict[str, str]) -> Draft:
    return translated(values)[0]


@pytest.mark.parametrize(
    ("section", "prefix"),
    [
        ("connector", ""),
        ("connect", ""),
        ("json", "value.converter."),
        ("producer", "producer.override."),
        ("unwrap", "transforms.t."),
        ("outbox", "transforms.o."),
    ],
)
def test_defaults_that_are_written_out_leave_nothing_to_decide(
    section: str, prefix: str
) -> None:
    given = {key: one for key, one in known(section, prefix).items() if one is not None}
    if section == "unwrap":
        given |= {
            "transforms": "t",
            "transforms.t.type": "io.debezium.transforms.ExtractNewRecordState",
        }
    if section == "outbox":
        given |= {
            "transforms": "o",
            "transforms.o.type": "io.debezium.transforms.outbox.EventRouter",
        }
    given["value.converter"] = JSON
    # a null in a column with a default is what docs/debezium.md tells of
    given.pop("value.converter.replace.null.with.default", None)
    given.pop("topic.naming.strategy", None)
    made = translated_with(given)
    assert undecided(made) == []


@pytest.mark.parametrize("section", ["connector", "connect", "producer"])
def test_every_property_is_known(section: str) -> None:
    prefix = "producer.override." if section == "producer" else ""
    for key in known(section, prefix):
        if key in {"bootstrap.servers", "producer.override.bootstrap.servers"}:
            continue
        told = fates(translated_with({key: "x"}), key)
        assert told, key
        if section != "producer":
            assert not any(word in str(told) for word in UNKNOWN), key


def test_what_nobody_knows_is_named_without_its_value() -> None:
    made = draft(tabel_include_list="s3cret")
    assert "misspelt" in fates(made, "tabel.include.list")[Fate.TO_DECIDE]
    assert "s3cret" not in str(list(made.reports()))


def test_dangers_of_the_hand_over_are_named() -> None:
    made = draft(
        slot_drop_on_stop="true",
        lsn_flush_mode="manual",
        exactly_once_support="required",
    )
    assert undecided(made) == [
        "slot.drop.on.stop",
        "lsn.flush.mode",
        "exactly.once.support",
    ]
    assert undecided(draft(flush_lsn_source="false")) == ["flush.lsn.source"]
    assert not undecided(draft(slot_drop_on_stop="false", lsn_flush_mode="connector"))


def test_topics_that_lose_their_writer_are_named() -> None:
    made = draft(
        notification_enabled_channels="log,sink", notification_sink_topic_name="n"
    )
    assert len(undecided(made)) == 2
    assert not undecided(draft(notification_enabled_channels="log"))


def test_parameters_of_schemas_differ_only_where_schemas_are_written() -> None:
    key = "column_propagate_source_type"
    assert undecided(draft(**{key: ".*"})) == ["column.propagate.source.type"]
    off = {f"{side}_converter_schemas_enable": "false" for side in ("key", "value")}
    assert not undecided(draft(**{key: ".*", **off}))


def test_options_of_classes_are_told_with_them() -> None:
    made = draft(converters="iso", iso_type="org.Iso", database_loggerLevel="OFF")
    assert undecided(made) == ["converters", "iso.type", "database.loggerLevel"]


def test_failover_slots_stay_such() -> None:
    assert draft(slot_failover="true").tables["source"]["failover"] is True
