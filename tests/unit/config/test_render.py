"""The effective configuration and the schema, as `walstream config` prints them."""

import tomllib
from collections.abc import Callable
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from walstream.config import Config, mask, schema
from walstream.config.oauth import PROPERTY

Load = Callable[..., Config]
POLLED = {
    "kind": "sql",
    "url": "sqlite:///x",
    "sinks": ["k"],
    "tables": {"t": {"primary_key": "id"}},
}
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def test_what_is_printed_reads_the_same_again(valid: str, load_text: Load) -> None:
    config = load_text(valid + 'topics."a \\"b\\".c" = { name = "x" }')
    assert load_text(mask(config)) == config


def test_every_default_is_printed(load_text: Load) -> None:
    printed = tomllib.loads(mask(load_text()))
    assert printed["shutdown_timeout"] == "20s"
    assert printed["sources"]["app"]["alarm_retained_wal"] == "10GiB"
    assert printed["sinks"]["kafka"]["topics"] == {}


def test_what_is_masked_reads_again_too(valid: str, load_text: Load) -> None:
    text = valid.replace("dbname=shop", "password=cAnArY")
    masked = mask(load_text(text))
    assert "cAnArY" not in masked
    assert 'dsn = "host=/run/postgresql password=***"' in masked
    load_text(masked)


@given(TEXT, TEXT)
@example(PROPERTY, "")
def test_any_text_is_written_so_that_it_reads_the_same(key: str, value: str) -> None:
    written = {"state": f"x{value}", "sources": {key: POLLED}}
    printed = tomllib.loads(mask(Config.model_validate(written)))
    assert printed["state"] == str(Path(f"x{value}"))
    assert printed["sources"].keys() == {key}


def test_the_schema_describes_every_section() -> None:
    described = schema()
    assert described["additionalProperties"] is False
    sections = described["$defs"]
    assert {
        "PostgresSource",
        "KafkaSinkConfig",
        "MappedTopic",
        "Http",
    } <= sections.keys()
    for section in sections.values():
        for key, field in section["properties"].items():
            assert field.get("description"), key
    retain = sections["PostgresSource"]["properties"]["retain"]
    assert (retain["type"], retain["default"]) == ("string", "0")
