"""A first configuration loads, says what was meant, and explains every key."""

import re
import tomllib
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from walstream.config import KafkaSinkConfig, PostgresSource, load
from walstream.config.template import Starter, write
from walstream.service.feature_support import refuse_unsupported

STARTER = Starter(
    source="app",
    dsn="host=/run/postgresql dbname=app",
    brokers="localhost:9092",
    state="/var/lib/walstream",
    tables=["public.*", "shop.*"],
    found=["public.orders  about 12 rows", "shop.x"],
)


def loaded(starter: Starter, folder: Path) -> tuple[PostgresSource, KafkaSinkConfig]:
    path = folder / "walstream.toml"
    path.write_text(write(starter), "utf-8")
    config = load(path, {"SECRET": "host=/run/postgresql password=x"})
    refuse_unsupported(config)
    assert str(config.state) == starter.state
    source, sink = config.sources[starter.source], config.sinks["kafka"]
    assert isinstance(source, PostgresSource)
    assert isinstance(sink, KafkaSinkConfig)
    return source, sink


def test_it_loads_as_what_was_meant(tmp_path: Path) -> None:
    source, sink = loaded(STARTER, tmp_path)
    assert source == PostgresSource(
        kind="postgres",
        dsn=STARTER.dsn,
        tables=["public.*", "shop.*"],
        backfill="initial",
        sinks=["kafka"],
    )
    producer = {"bootstrap.servers": "localhost:9092"}
    assert sink == KafkaSinkConfig(kind="kafka", producer=producer)


def test_references_are_kept(tmp_path: Path) -> None:
    source, _ = loaded(replace(STARTER, dsn="${env:SECRET}"), tmp_path)
    assert source.dsn == "host=/run/postgresql password=x"
    assert "keep secrets" in write(replace(STARTER, dsn="${env:SECRET}"))
    assert "keep secrets" not in write(STARTER)


def test_servers_elsewhere_are_allowed_only_when_told(tmp_path: Path) -> None:
    told = replace(
        STARTER,
        dsn="host=db.example",
        brokers="kafka.example:9092",
        insecure_source=True,
        insecure_sink=True,
    )
    source, sink = loaded(told, tmp_path)
    assert source.insecure
    assert sink.insecure
    assert "insecure = true\n" not in write(STARTER)


def test_the_publication_is_named_as_the_slot(tmp_path: Path) -> None:
    source, _ = loaded(replace(STARTER, slot="walstream_2"), tmp_path)
    assert source.slot == source.publication == "walstream_2"


def test_every_key_is_explained_by_the_model() -> None:
    lines = write(STARTER).splitlines()
    for before, line in pairwise(lines):
        if re.match(r'[a-z_"]', line) and not before.startswith("#   "):
            assert before.startswith("# "), line
    assert f"# {PostgresSource.model_fields['slot'].description}" in lines


def test_the_examples_can_be_switched_on(tmp_path: Path) -> None:
    text = write(replace(STARTER, example='we"ird.täble'))
    keys = 'name|partition_key|kind|url|sinks|primary_key|format|"bootstrap'
    switched = re.sub(rf"(?m)^# (\[|{keys})", r"\1", text)
    document = tomllib.loads(switched)
    assert document["sinks"]["kafka"]["topics"] == {
        'we"ird.täble': {"name": "a_topic", "partition_key": ["a_column"]}
    }
    path = tmp_path / "walstream.toml"
    path.write_text(switched, "utf-8")
    config = load(path, {"PASSWORD": "x"})
    refuse_unsupported(config)
    assert config.sql_source("legacy").sinks == ["rows"]


@pytest.mark.parametrize("count", [0, 1, 40, 41, 5000])
def test_many_tables_are_cut_short(count: int) -> None:
    text = write(replace(STARTER, found=[f"public.t{n}" for n in range(count)]))
    assert text.count("#   public.t") == min(count, 40)
    assert ("and 4960 more" in text) == (count == 5000)
    tomllib.loads(text)


def test_lines_are_short() -> None:
    assert max(map(len, write(STARTER).splitlines())) <= 90
