"""A job's figures. What drivers do is shown by tests/integration and tests/fault."""

import time

import pytest

from walstream.backfill.job import Progress


def test_time_left_follows_from_what_is_done() -> None:
    progress = Progress(chunks=4, size=1000, began=time.monotonic() - 10)
    progress.chunks_done, progress.size_done, progress.rows = 1, 250, 500
    told = progress.report()
    assert told["share"] == 0.25
    assert told["left_s"] == pytest.approx(30, abs=1)
    assert told["rows_per_s"] == pytest.approx(50, abs=2)


def test_without_a_figure_nothing_is_promised() -> None:
    told = Progress(chunks=1, size=0, began=time.monotonic()).report()
    assert told["share"] == 0
    assert told["left_s"] is None
