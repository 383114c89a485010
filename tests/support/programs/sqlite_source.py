"""SQLite files, and sources that poll them: databases without a server.

execute(file, "CREATE TABLE t (id INTEGER PRIMARY KEY)")
config = configured(tmp_path, {"t": {}})     # file is tmp_path / "shop.db"
"""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from walstream.config import Config, SqlSource

SOURCE: Final = "legacy"


def execute(file: Path, script: str) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(script)


def file_of(folder: Path) -> Path:
    return folder / "shop.db"


def configured(
    folder: Path, tables: Mapping[str, Mapping[str, Any]], **sink: Any
) -> Config:
    """Poll the file of a folder, whose state lies there, too."""
    kafka = {"bootstrap.servers": "127.0.0.1:1"}
    source = {
        "kind": "sql",
        "url": f"sqlite:///{file_of(folder)}",
        "sinks": ["rows"],
        "tables": {name: {"primary_key": "id", **how} for name, how in tables.items()},
    }
    rows = {"kind": "kafka", "format": "row", "producer": kafka, **sink}
    return Config.model_validate(
        {
            "state": str(folder / "state"),
            "sources": {SOURCE: source},
            "sinks": {"rows": rows},
        }
    )


def source_of(config: Config) -> SqlSource:
    return config.sql_source(SOURCE)


def state_of(config: Config) -> Path:
    """Where the source's documents are."""
    return Path(config.state) / SOURCE
