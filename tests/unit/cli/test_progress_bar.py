"""A bar for each backfill, drawn on a terminal of our own."""

import io

from rich.console import Console

from walstream.cli.progress_bar import Bars

HALF = {"share": 0.5, "rows": 1234, "bytes": 5 << 20, "rows_per_s": 99.0}


def shown(*reports: dict[str, object]) -> str:
    screen = io.StringIO()
    bars = Bars(Console(file=screen, force_terminal=True, width=100))
    for report in reports:
        bars.show({"app": report})
    bars.close()
    return screen.getvalue()


def test_a_backfill_is_a_bar_with_its_figures() -> None:
    text = shown({"backfill": HALF})
    assert "backfill app" in text
    assert "50% 1,234 rows, 5 MiB, 99 rows/s" in text


def test_nothing_is_drawn_without_one() -> None:
    assert shown({}, {"backfill": None}) == ""


def test_the_next_one_begins_anew() -> None:
    done = {**HALF, "share": 0.9}
    text = shown({"backfill": done}, {}, {"backfill": HALF})
    assert text.index("90%") < text.rindex("50%")


def polled(seconds: float | None, rows: int = 0) -> dict[str, object]:
    poll = None if seconds is None else {"s": seconds, "rows": rows}
    return {"tables": {"t": {"poll": poll}}}


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
    bars.show({"app": {"backfill": HALF}, "legacy": polled(2.0)})
    bars.show({"app": {}, "legacy": polled(3.0)})
    screen.truncate(0)
    bars.show({"app": {}, "legacy": polled(4.0, 7)})
    bars.close()
    assert "poll legacy, t" in screen.getvalue()
    assert "backfill" not in screen.getvalue()


def test_a_tables_name_drives_no_terminal() -> None:
    poll = {"s": 30.0, "rows": 1}
    text = shown({"tables": {"\x1b]0;owned\x9b2J[red]": {"poll": poll}}})
    assert r"\x1b]0;owned\x9b2J[red]" in text
    assert "\x1b]" not in text
