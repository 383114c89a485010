"""Records what PostgreSQL 18 sends for workload.sql, and what each format makes of it.

`python -m tests.data.formats.record` writes workload.bin and a file for each format: a
line a record, key and value. With `--formats` the payloads stay as they were recorded.
"""

import sys
from pathlib import Path

from tests.data.pgoutput.record import prefixed, record
from tests.support.fixtures.postgres import local_postgres
from tests.support.oracles.golden import FORMATS, WORKLOAD, written

FOLDER = Path(__file__).parent


def main() -> None:
    if "--formats" not in sys.argv:
        script = (FOLDER / "workload.sql").read_text("utf-8")
        with local_postgres(18) as server:
            payloads = record(server, script)
        WORKLOAD.write_bytes(b"".join(map(prefixed, payloads)))
    for name in FORMATS:
        path = FOLDER / f"{name}.txt"
        path.write_bytes(b"".join(line + b"\n" for line in written(name)))


if __name__ == "__main__":
    main()
