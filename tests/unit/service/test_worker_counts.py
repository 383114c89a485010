"""What processes counted, one after the other."""

from walstream.service.worker_counts import WorkerCounts
from walstream.telemetry.counts import ProcessCounts, SourceCounts


def counts(rows: int, **errors: int) -> ProcessCounts:
    return ProcessCounts(metrics=SourceCounts(backfill_rows=rows), errors=errors)


def test_the_next_process_counts_on() -> None:
    counted = WorkerCounts()
    assert counted.sum == ProcessCounts()
    counted.hear(counts(4))
    counted.hear(counts(5, transient=1))
    assert counted.sum == counts(5, transient=1)
    counted.end()
    assert counted.sum == counts(5, transient=1)
    for rows in (2, 3):
        counted.hear(counts(rows, transient=rows))
        assert counted.sum == counts(5 + rows, transient=1 + rows)
