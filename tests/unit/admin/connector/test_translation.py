"""A connector becomes a configuration that writes what it wrote."""

from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.connector import PLAIN, connector, translated, undecided
from tests.support.oracles.debezium import FOLDER, VARIANTS
from walstream.admin.connector import connector_file
from walstream.admin.connector.document import write
from walstream.admin.connector.draft import Fate
from walstream.admin.connector.translation import translate
from walstream.config import KafkaSinkConfig, load
from walstream.errors import ConfigError
from walstream.sources.debezium_options import debezium_options

KEYS: Final = st.sampled_from(
    [
        *("table.include.list", "table.exclude.list", "column.exclude.list"),
        *("column.include.list", "message.key.columns", "snapshot.mode"),
        *("transforms", "transforms.a.type", "transforms.a.regex", "plugin.name"),
        *("tombstones.on.delete", "skipped.operations", "topic.delimiter"),
        *("database.password", "database.port", "heartbeat.interval.ms", "x.y"),
        *("producer.override.sasl.jaas.config", "key.converter", "slot.name"),
        *("value.converter.schemas.enable", "topic.creation.default.partitions"),
        *("column.mask.with.3.chars", "column.mask.hash.a.with.salt.b", "converters"),
    ]
)
VALUES: Final = st.one_of(
    st.sampled_from(["true", "false", "", "t,c", "a.b", "a.b:c;d", r"a\..*", "5", "a"]),
    st.text(max_size=9),
)


@pytest.mark.parametrize("name", sorted(VARIANTS))
def test_the_golden_connectors_write_their_golden_records(
    name: str, tmp_path: Path
) -> None:
    """tests/unit/formats/debezium/test_golden.py compares these options' records."""
    output = tmp_path / "walstream.toml"
    file = connector_file.read(FOLDER / "connectors" / f"{name}.json")
    draft, _ = translate(file, output, brokers="localhost:9092")
    output.write_text(write(draft, state="state", insecure=(False, False)))
    sink = load(output, {}).sinks["kafka"]
    assert isinstance(sink, KafkaSinkConfig)
    options = debezium_options(sink, "app", "postgres")
    assert options is not None
    assert replace(options, version=VARIANTS[name].version) == VARIANTS[name]
    skips = name not in {"dbz", "dstr"}
    assert sink.on_truncate == ("skip" if skips else "send")
    assert sink.tombstones
    assert sink.topic == f"{name}.{{schema}}.{{table}}"
    source = load(output, {}).postgres_source("app")
    assert (source.slot, source.publication, source.tables) == (name, "golden", [])
    assert source.backfill == "never"


@given(st.dictionaries(KEYS, VALUES, max_size=12))
def test_every_key_is_accounted_for(entries: dict[str, str]) -> None:
    """Whatever it holds; and no secret of it is told."""
    secret = "gEh3im" * 2
    entries["database.password"] = secret
    file = connector({key: value.strip() for key, value in entries.items()})
    draft, _ = translate(file, Path("/nowhere/w.toml"))
    assert not draft.unspoken()
    told = {one.key for one in draft.reports()}
    salted = "column.mask.hash.a.with.salt."
    assert told >= {key.replace(f"{salted}b", f"{salted}***") for key in file.entries}
    written = write(draft, state="s", insecure=(False, False))
    assert secret not in written + str(list(draft.reports()))


def test_what_is_in_its_file_is_told_under_its_own_name(tmp_path: Path) -> None:
    path = tmp_path / "c.properties"
    path.write_text("\n".join(f"{key}={value}" for key, value in PLAIN.items()))
    draft, _ = translate(connector_file.read(path), tmp_path / "w.toml")
    assert {one.key for one in draft.reports()} == PLAIN.keys()
    assert not undecided(draft)
    worker = tmp_path / "worker.properties"
    worker.write_text("group.id=g\n")
    draft, _ = translate(connector_file.read(path, worker), tmp_path / "w.toml")
    (foreign,) = (one for one in draft.reports() if one.key == "group.id (worker)")
    assert foreign.fate is Fate.NO_EFFECT


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("database.hostname", "database.hostname"),
        ("topic.prefix", "topic.prefix"),
        ("producer.override.bootstrap.servers", "which brokers"),
    ],
)
def test_what_a_connector_has_to_say_is_asked_for(key: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        translated({key: ""})
