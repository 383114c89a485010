"""The demo's result, in words and figures."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from walstream.cli.demo.crash import DeliveryGap
from walstream.cli.demo.screen import Screen, show_ms
from walstream.cli.demo.tally import DemoChange, DemoTally, DemoVerdict, percentile

_LISTED: Final = 10


@dataclass(frozen=True, slots=True)
class Result:
    verdict: DemoVerdict
    transactions: int
    tally: DemoTally
    outage: DeliveryGap | None


def show(screen: Screen, result: Result) -> None:
    """Print the table, then whether all is there, and what is not."""
    verdict = result.verdict
    screen.say()
    screen.result(
        [
            *_counts(verdict, result.transactions),
            *_latencies(result.tally.latencies, result.outage),
        ]
    )
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


def _counts(verdict: DemoVerdict, transactions: int) -> list[tuple[str, str, str]]:
    missing = verdict.missing.total()
    colour = "red" if missing else "green"
    equal = "differ" if verdict.unequal else "equal"
    return [
        (
            "Changes written",
            f"{verdict.written:,}",
            f"by {transactions:,} transactions; counted by triggers",
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
    latencies: Sequence[tuple[int, float]], outage: DeliveryGap | None
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


def _list(screen: Screen, what: str, changes: Counter[DemoChange]) -> None:
    if not changes:
        return
    screen.say(f"[bold red]{changes.total():,} changes {what}[/]")
    for change, times in changes.most_common(_LISTED):
        screen.plain(
            f"  {times}x {change.operation} of {change.table} {list(change.key)}"
        )
