"""The demo's result, in words and figures."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from walstream.demo.crash import Outage
from walstream.demo.screen import Screen, show_ms
from walstream.demo.tally import Change, Tally, Verdict, percentile

_LISTED: Final = 10


def show(screen: Screen, verdict: Verdict, tally: Tally, outage: Outage | None) -> None:
    """Print the table, then whether all is there, and what is not."""
    screen.say()
    screen.result([*_counts(verdict), *_latencies(tally.latencies, outage)])
    screen.say()
    if verdict.ok:
        screen.say("[bold green]Nothing is missing.[/]")
        return
    _list(screen, "missing in Kafka", verdict.missing)
    _list(screen, "in Kafka, but never written", verdict.unwritten)
    if verdict.unequal:
        screen.say(f"[bold red]{len(verdict.unequal):,} rows differ[/]")
        for table, key in verdict.unequal[:_LISTED]:
            screen.plain(f"  {table} {list(key)}")


def _counts(verdict: Verdict) -> list[tuple[str, str, str]]:
    missing = verdict.missing.total()
    colour = "red" if missing else "green"
    equal = "differ" if verdict.unequal else "equal"
    return [
        (
            "Changes written",
            f"{verdict.written:,}",
            "counted by triggers in the tables",
        ),
        (
            "Changes delivered",
            f"{verdict.delivered:,}",
            "counted by reading the topics",
        ),
        ("Missing", f"[bold {colour}]{missing:,}[/]", "by table, operation and key"),
        (
            "Repeated",
            f"{verdict.repeated:,}",
            "the kill's replay: same (lsn, seq_id), so consumers skip them",
        ),
        (
            "Rows compared",
            f"{verdict.rows:,}",
            f"{verdict.tables} tables rebuilt from the topics alone: {equal}",
        ),
    ]


def _latencies(
    latencies: Sequence[tuple[int, float]], outage: Outage | None
) -> list[tuple[str, str, str]]:
    usual: list[float] = []
    delayed: list[float] = []
    for committed_ms, latency_ms in latencies:
        late = outage is not None and outage.delayed(committed_ms, latency_ms)
        (delayed if late else usual).append(latency_ms)
    rows = [("Latency p50 / p99", _percentiles(usual), "from commit to receipt")]
    if delayed:
        rows.append(
            (
                "… around the kill",
                _percentiles(delayed),
                f"the {len(delayed):,} changes that had to wait for the new worker",
            )
        )
        both = [*usual, *delayed]
        rows.append(("… all together", _percentiles(both), ""))
    return rows


def _percentiles(values: Iterable[float]) -> str:
    ranked = sorted(values)
    p50, p99 = (show_ms(percentile(ranked, percent)) for percent in (50, 99))
    return f"{p50} / {p99}"


def _list(screen: Screen, what: str, changes: Counter[Change]) -> None:
    if not changes:
        return
    screen.say(f"[bold red]{changes.total():,} changes {what}[/]")
    for change, times in changes.most_common(_LISTED):
        screen.plain(
            f"  {times}x {change.operation} of {change.table} {list(change.key)}"
        )
