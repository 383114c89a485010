"""A worker loads what its own kind of source needs, and nothing of the others."""

import subprocess
import sys
from pathlib import Path

import pytest

_CONFIG = """
[sources.postgres]
kind = "postgres"
dsn = "postgresql://localhost/shop"
sinks = ["rows"]
[sources.kafka]
kind = "kafka"
topics = ["t"]
sinks = ["rows"]
[sources.kafka.consumer]
"bootstrap.servers" = "localhost:9093"
[sinks.rows]
kind = "kafka"
topic = "{source}.{table}"
[sinks.rows.producer]
"bootstrap.servers" = "localhost:9092"
"""
_MAKE = """
import sys
from pathlib import Path
from walstream.service import source_runner as parts
from walstream.config import load
from walstream.config.run_options import Options
from walstream.state.store import LmdbStore
from walstream.pipeline.shutdown import Stop, Waker
with LmdbStore(Path("state")) as positions:
    given = positions, Options(), Stop(Waker(), 1.0)
    part = parts.runner_of(load(Path("walstream.toml")), {name!r}, *given)
    can = isinstance(part, parts.Backfills), isinstance(part, parts.Polls)
print(type(part).__name__, *can, *sorted({modules} & sys.modules.keys()))
"""
_KINDS = {
    "walstream.sources.postgres.runner",
    "walstream.sources.plugin",
    "walstream.sources.kafka.runner",
    "walstream.sources.sql.runner",
    "walstream.sources.postgres.detached_runner",
}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("postgres", "PostgresRunner True False walstream.sources.postgres.runner\n"),
        ("kafka", "KafkaRunner False False walstream.sources.kafka.runner\n"),
    ],
)
def test_a_kind_loads_no_other_one(tmp_path: Path, name: str, expected: str) -> None:
    (tmp_path / "walstream.toml").write_text(_CONFIG)
    done = subprocess.run(
        [sys.executable, "-c", _MAKE.format(name=name, modules=_KINDS)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.stdout == expected, done.stderr
