"""A bar for each backfill, drawn on a terminal of our own."""

import io
from dataclasses import replace

from rich.console import Console

from walstream.cli.progress_bar import Bars
from walstream.sources.report import (
    BackfillReport,
    PollReport,
    PollRun,
    StreamReport,
    TableReport,
    WorkerReport,
)

HALF = BackfillReport(
    tables=1,
    chunks=2,
    chunks_done=1,
    rows=1234,
    bytes=5 << 20,
    rows_per_s=99.0,
    share=0.5,
    left_s=None,
)
NOTHING = WorkerReport()


def filling(backfill: BackfillReport | None) -> WorkerReport:
    return WorkerReport(source=StreamReport(backfill=backfill))


def shown(*reports: WorkerReport) -> str:
    screen = io.StringIO()
    bars = Bars(Console(file=screen, force_terminal=True, width=100))
    for report in reports:
        bars.show({"app": report})
    bars.close()
    return screen.getvalue()


def test_a_backfill_is_a_bar_with_its_figures() -> None:
    text = shown(filling(HALF))
    assert "backfill app" in text
    assert "50% 1,234 rows, 5 MiB, 99 rows/s" in text


def test_nothing_is_drawn_without_one() -> None:
    assert shown(NOTHING, filling(None)) == ""


def test_the_next_one_begins_anew() -> None:
    done = replace(HALF, share=0.9)
    text = shown(filling(done), NOTHING, filling(HALF))
    assert text.index("90%") < text.rindex("50%")


def polled(seconds: float | None, rows: int = 0) -> WorkerReport:
    poll = None if seconds is None else PollRun(seconds, rows)
    return WorkerReport(source=PollReport(tables={"t": TableReport(poll=poll)}))


def test_a_poll_that_takes_long_has_a_line_with_its_figures() -> None:
    text = shown(polled(2.0, 5000))
    assert "poll app, t" in text
    assert "5,000 rows, 2,500 rows/s" in text
    assert "%" not in text


def test_a_short_poll_is_not_drawn() -> None:
    assert shown(polled(0.9), polled(None)) == ""


def test_what_has_ended_is_not_drawn_beside_what_goes_on() -> None:
    screen = io.StringIO()
    bars = Bars(Console(file=screen, force_terminal=True, width=100))
    bars.show({"app": filling(HALF), "legacy": polled(2.0)})
    bars.show({"app": NOTHING, "legacy": polled(3.0)})
    screen.truncate(0)
    bars.show({"app": NOTHING, "legacy": polled(4.0, 7)})
    bars.close()
    assert "poll legacy, t" in screen.getvalue()
    assert "backfill" not in screen.getvalue()


def test_a_tables_name_drives_no_terminal() -> None:
    tables = {"\x1b]0;owned\x9b2J[red]": TableReport(poll=PollRun(30.0, 1))}
    text = shown(WorkerReport(source=PollReport(tables=tables)))
    assert r"\x1b]0;owned\x9b2J[red]" in text
    assert "\x1b]" not in text
