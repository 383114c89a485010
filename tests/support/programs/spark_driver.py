"""A driver of its own, to be killed: reads what to do from stdin, and runs chunks.

Writes a line for each thing that happened: `jvm PID`, `done NUMBER`, `error …`, `end`.
"""

import json
import sys
import time
from pathlib import Path

from tests.support.fixtures.spark import Backfill
from walstream.errors import WalstreamError
from walstream.sources.postgres.backfill.chunk import Chunk
from walstream.sources.postgres.backfill.task import Outcome
from walstream.spark import session
from walstream.spark.jobs import run
from walstream.spark.leash import Leash
from walstream.spark.outcome import ChunkDone


def main() -> int:
    order = json.loads(sys.stdin.readline())
    spark = session.start(session.Settings(order["master"]))
    print("jvm", spark.context._gateway.proc.pid, flush=True)  # type: ignore[union-attr]  # noqa: SLF001, T201 - whom to kill
    backfill = Backfill(order["dsn"], order["bootstrap"], order["prefix"], partitions=1)
    leash = Leash.of_this_process(Path(order["lock"]))
    with backfill.holding() as snapshot:
        chunks = backfill.plan(order["table"], chunk_bytes=order["chunk_bytes"])
        task = backfill.task(snapshot, chunks, leash=leash)
        pause_s = order["pause_s"]

        def slow(chunk: Chunk) -> Outcome:
            outcome = task(chunk)
            time.sleep(pause_s)
            return outcome

        def tell(done: ChunkDone) -> None:
            print("done", done.number, flush=True)  # noqa: T201 - to the test

        try:
            run(spark, chunks, slow, tell)
        except WalstreamError as error:
            print("error", " ".join(str(error).split()), flush=True)  # noqa: T201 - likewise
            return error.exit_code
    print("end", flush=True)  # noqa: T201 - likewise
    return 0


if __name__ == "__main__":
    sys.exit(main())
