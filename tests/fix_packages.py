"""Fixtures of packages: what was made, and a system in which it is installed."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.installing import System, build, debian
from tests.running import SINK, SOURCE

CONFIGURATION: Final = "/etc/walstream/walstream.toml"
STATE: Final = "/var/lib/walstream"


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Make both, and the next release of the first, or take those that were made."""
    if made_in := os.environ.get("WALSTREAM_TEST_PACKAGES"):
        out = Path(made_in)
    else:
        out = tmp_path_factory.mktemp("packages")
        build(out / "first", "deb")
        build(out / "second", "deb", only="walstream", release=2)
    made = sorted((out / "first").iterdir())
    (newer,) = (out / "second").iterdir()
    return {**{path.name.split("_")[0]: path for path in made}, "newer": newer}


@pytest.fixture
def system(packages: dict[str, Path], tmp_path: Path) -> Iterator[System]:
    """Give a clean Debian in which walstream was just installed."""
    made = debian(tmp_path / "debian")
    made.install(packages["walstream"])
    yield made
    shutil.rmtree(made.folder)


def document(dsn: str, brokers: str, prefix: str) -> dict[str, object]:
    """Write a configuration, without HTTP."""
    names = {"slot": "packaged", "publication": "packaged"}
    source = {"kind": "postgres", "dsn": dsn, **names, "backfill": "never"}
    producer = {"bootstrap.servers": brokers}
    topic = prefix + "{schema}.{table}"
    sink = {"kind": "kafka", "topic": topic, "producer": producer}
    sources, sinks = {SOURCE: {**source, "sinks": [SINK]}}, {SINK: sink}
    return {"state": STATE, "http": {"listen": ""}, "sources": sources, "sinks": sinks}
