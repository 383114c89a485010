"""A custom format: one line of CSV per row.

The package's pyproject.toml names it:

[project.entry-points."walstream.formats"]
csv = "own_format:CsvEncoder"
"""

import csv
import io

from walstream.formats import Context
from walstream.op import ReplicationOp, Table


class CsvEncoder:
    truncates = False  # a TRUNCATE cannot be written: it is dropped and counted

    def __init__(self, table: Table, _: Context) -> None:
        self._name = table.full_name

    def encode(self, op: ReplicationOp) -> bytes:
        row = op.new if op.new is not None else op.old or ()
        texts = [value if isinstance(value, str) else "" for value in row]
        line = io.StringIO()
        csv.writer(line).writerow(
            [op.lsn, op.seq_id, op.kind.value, self._name, *texts]
        )
        return line.getvalue().encode()
