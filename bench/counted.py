"""`python -m bench.counted`: what the loop costs a row, in memory, its counting too.

Prepared frames go through the real loop into a sink that encodes and discards. The
same file runs on an older checkout: PYTHONPATH=THERE python bench/counted.py.
"""

import statistics
import time

from walstream.formats.context import Context, SourceOrigin
from walstream.pipeline.checkpoint import Checkpointer, StartPoint
from walstream.pipeline.loop import Pipeline
from walstream.pipeline.pgoutput import Column, Insert, Relation
from walstream.pipeline.ports import Position
from walstream.pipeline.shutdown import Stop, Waker
from walstream.pipeline.sinks.dry_run import DrySink
from walstream.records.encoding import SinkRules
from walstream.records.router import Router, RoutingRules
from walstream.testing import (
    MemoryCompanion,
    MemorySource,
    MemoryStore,
    transaction,
)

_TABLE = Relation(
    1,
    "public",
    "t",
    "d",
    [Column(n == 0, f"c{n}", 25 if n else 20, -1) for n in range(6)],
)
_ROWS = 100_000
_RUNS = 9


def main() -> None:
    for size in (1, 100):
        runs = [drained(size) for _ in range(_RUNS)]
        print(
            f"{size:4} rows a transaction: best {max(runs):,.0f} rows/s,"
            f" median {statistics.median(runs):,.0f}"
        )


def drained(size: int) -> float:
    """Give the rows a second of CPU of one run: a machine has other work."""
    frames: list[bytes] = []
    for number in range(_ROWS // size):
        rows = [
            Insert(
                1,
                [str(number * size + row), "a", "some text", "1.5", "x", "y"],
                toasted=False,
            )
            for row in range(size)
        ]
        frames += transaction(2000 + number * 100, _TABLE, *rows)
    stop = Stop(Waker(), 10.0)
    context = Context(SourceOrigin("h", "d", 1, "s"), frozenset())
    rules = SinkRules(
        name="sink",
        format="op",
        partitioner="",
        on_truncate="send",
        split_key_updates=True,
        source_header=b"1/d/0",
        context=context,
    )
    router = Router("app", RoutingRules({}, "{schema}.{table}", ""))
    with MemorySource(frames, on_exhausted=stop.request) as source:
        checkpointer = Checkpointer(
            StartPoint(Position(1000, 1, 1, "d", "s")),
            MemoryStore(),
            source,
            stop.waker.wake,
        )
        sinks = [DrySink(rules, router, says=False)]
        pipeline = Pipeline(source, sinks, MemoryCompanion(), checkpointer)
        began = time.thread_time()
        pipeline.run(stop)
        elapsed = time.thread_time() - began
    checkpointer.close()
    return _ROWS / elapsed


if __name__ == "__main__":
    main()
