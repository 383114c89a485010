"""A custom sink that appends one line per change to a file.

The package's pyproject.toml names it:

[project.entry-points."walstream.sinks"]
file = "own_sink:FileSink"

[sinks.audit]
kind = "file"
options = { path = "/var/log/changes.txt" }
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from walstream.op import ReplicationOp, Table
from walstream.pipeline.ledger import Transaction


class FileSink:
    in_flight = 0  # a line is written when `send` returns

    def __init__(self, _: str, options: Mapping[str, Any]) -> None:
        self._file = Path(options["path"]).open("ab", buffering=0)

    def ready(self) -> bool:
        return True

    def knows(self, _: Table) -> bool:
        return True

    def send(self, op: ReplicationOp, _: Transaction) -> bool:
        row = [value for value in op.new or op.old or () if isinstance(value, str)]
        line = [str(op.lsn), str(op.seq_id), op.kind.value, op.table.full_name, *row]
        self._file.write("\t".join(line).encode() + b"\n")
        return True

    def close(self) -> None:
        self._file.close()
