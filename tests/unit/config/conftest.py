"""Configurations for these tests: a small valid one, and how to change and load it."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest

from walstream.config import Config, load
from walstream.errors import ConfigError

VALID: Final = """
[sources.app]
kind = "postgres"
dsn = "host=/run/postgresql dbname=shop"
sinks = ["kafka"]
[sinks.kafka]
kind = "kafka"
producer = { "bootstrap.servers" = "localhost:9092" }
"""

Load = Callable[..., Config]
Complain = Callable[..., str]


@pytest.fixture
def valid() -> str:
    """Return the shortest configuration that loads."""
    return VALID


@pytest.fixture
def load_text(tmp_path: Path) -> Load:
    """Load a configuration from its text."""

    def load_it(
        text: str = VALID,
        environment: Mapping[str, str] | None = None,
        name: str = "walstream.toml",
    ) -> Config:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return load(path, environment or {})

    return load_it


@pytest.fixture
def complaint(load_text: Load) -> Complain:
    """Load a configuration that must fail, and return what the operator reads."""

    def complain(
        text: str,
        environment: Mapping[str, str] | None = None,
        name: str = "walstream.toml",
    ) -> str:
        with pytest.raises(ConfigError) as caught:
            load_text(text, environment, name)
        return str(caught.value)

    return complain
