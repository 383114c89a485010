"""A sql source under test: `walstream` on a configuration of polled tables.

polled = Polled(url, kafka.bootstrap, tmp_path, prefix, {"t": {"primary_key": "id"}})
polled.once()                     # walstream poll --once
polled.start().polling()          # walstream run
"""

import json
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.support.oracles.topic_reader import Reader
from tests.support.programs.verb import verb
from tests.support.programs.walstream import Walstream, toml
from walstream.formats.row import PolledRow, decode

SOURCE: Final = "legacy"
_ONCE_S: Final = 120


@dataclass
class Polled(Walstream):
    """One sql source and one sink; `dsn` is its URL."""

    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    others: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # sources
    other_sinks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def state(self) -> Path:
        return self.folder / "state" / SOURCE

    def document(self) -> dict[str, Any]:
        source = sql_source(self.dsn, self.tables)
        return {
            "state": str(self.folder / "state"),
            "http": {"listen": ""},
            "spark": {"master": "local[2,4]", "min_size": "0"},
            **self.top,
            "sources": {SOURCE: {**source, **self.source}, **self.others},
            "sinks": {
                "rows": {
                    "kind": "kafka",
                    "format": "row",
                    "topic": self.prefix + "{schema}.{table}",
                    "producer": {"bootstrap.servers": self.bootstrap},
                    **self.sink,
                },
                **self.other_sinks,
            },
        }

    def polling(self) -> "Polled":
        """Wait until it polls."""
        self.until("polling")
        return self

    def command(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run a verb on this configuration."""
        self.configuration.write_text(toml(self.document()), "utf-8")
        return verb(self.configuration, *words, timeout_s=_ONCE_S)

    def once(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Poll once, and see that it ended well."""
        done = self.command("poll", "--once", *words)
        assert done.returncode == 0, done.stderr
        return done

    def reader(self, read: Callable[[Any], Any] = decode) -> Reader:
        return Reader(self.bootstrap, self.prefix, read)


def sql_source(url: str, tables: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Write one, whose keys are called id."""
    found = {name: {"primary_key": "id", **rules} for name, rules in tables.items()}
    return {
        "kind": "sql",
        "url": url,
        "poll_interval": "100ms",
        "sinks": ["rows"],
        "tables": found,
    }


def rows_of(reader: Reader) -> list[PolledRow]:
    """Give what was read, in the order of topics, partitions and offsets."""
    return [record.op for record in reader.records]  # type: ignore[misc]


def keys_of(reader: Reader) -> list[int]:
    return [int(json.loads(record.key)[0]) for record in reader.records]
