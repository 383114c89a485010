"""A custom source: each line that is appended to a file is a row.

The package's pyproject.toml names it:

[project.entry-points."walstream.sources"]
lines = "own_source:Lines"

[sources.journal]
kind = "lines"
sinks = ["kafka"]
options = { path = "/var/log/journal.txt" }
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from walstream.pipeline.pgoutput.messages import Column, Insert, Relation
from walstream.testing import encode, transaction, wal_data

TEXT_OID = 25
KEY, LINE = (
    Column(is_key=name == "place", name=name, type_oid=TEXT_OID, type_modifier=-1)
    for name in ("place", "line")
)
TABLE = Relation(1, "public", "lines", "d", [KEY, LINE])


class Lines:
    def __init__(self, _: str, options: Mapping[str, Any], resume: int) -> None:
        self._file = Path(options["path"]).open("rb")  # a line's LSN is where it begins
        self._file.seek(resume)
        self._silent, self._writer = os.pipe()
        self._frames = [wal_data(encode(TABLE))]

    def read(self, limit: int) -> list[bytes]:
        frames, self._frames = self._frames, []
        while len(frames) < limit:
            place, line = self._file.tell(), self._file.readline()
            if not line.endswith(b"\n"):  # not whole yet
                self._file.seek(place)
                break
            row = Insert(TABLE.oid, [str(place), line.decode().strip()], toasted=False)
            frames += transaction(place, row, end_lsn=self._file.tell())
        return frames

    def fileno(self) -> int:
        return self._silent  # nothing tells that a file grew: `read` is asked anyway

    def confirm(self, lsn: int) -> None: ...  # lines before it may go

    def keep_alive(self, *, now: bool = False) -> None: ...

    def still_paused(self) -> None: ...

    def close(self) -> None:
        self._file.close()
        os.close(self._silent)
        os.close(self._writer)
