"""The whole model: complete, frozen, and handed over a pipe without loss."""

from collections.abc import Callable

import pytest
from pydantic import ValidationError

from walstream.config import Config
from walstream.errors import ConfigError

Load = Callable[..., Config]


def test_a_config_goes_through_a_pipe_with_its_secrets(
    valid: str, load_text: Load
) -> None:
    text = valid.replace("dbname=shop", "password=${env:PW} user=é")
    config = load_text(text + 'topics."a.b" = { name = "x" }', {"PW": "cAnArY"})
    copy = Config.from_json(config.to_json())
    assert copy == config
    assert copy.secrets.values == config.secrets.values
    assert "cAnArY" in copy.secrets.values
    assert copy.sources == config.sources


def test_a_config_cannot_be_changed(load_text: Load) -> None:
    config = load_text()
    with pytest.raises(ValidationError):
        config.log_level = "debug"


def test_even_the_raw_refusal_hides_what_was_written() -> None:
    source = {"kind": "sql", "url": "cAnArY", "sinks": ["cAnArY", "cAnArY"]}
    with pytest.raises(ValidationError) as caught:
        Config.model_validate({"sources": {"old": source}})
    assert "cAnArY" not in str(caught.value)


def test_the_empty_model_holds_every_default() -> None:
    config = Config()
    assert config.http.listen == "127.0.0.1:8321"
    assert config.spark.master == "local[*,4]"
    assert config.secrets.values == frozenset()


def test_a_source_that_is_no_postgres_source_is_refused_with_those_there_are(
    load_text: Load, valid: str
) -> None:
    config = load_text(valid)
    (name,) = config.postgres_sources
    assert config.postgres_source(name) is config.sources[name]
    with pytest.raises(ConfigError, match="no postgres source 'nope'") as refused:
        config.postgres_source("nope")
    assert refused.value.hint == f"configured are: {name}"


def test_a_source_of_another_kind_is_refused_with_its_kind() -> None:
    polled = {"kind": "sql", "url": "sqlite:///x", "sinks": ["rows"]}
    tables = {"t": {"primary_key": "id"}}
    config = Config.model_validate(
        {"sources": {"legacy": {**polled, "tables": tables}}}
    )
    assert config.sql_source("legacy") is config.sources["legacy"]
    with pytest.raises(ConfigError, match="'legacy' is a sql source") as refused:
        config.postgres_source("legacy")
    assert refused.value.hint == "configured are: none"
    with pytest.raises(ConfigError, match="there is no sql source 'nope'") as refused:
        config.sql_source("nope")
    assert refused.value.hint == "configured are: legacy"
