"""The goals, and whether the figures of a profile meet them: pure."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from bench.programs import AVRO, AWAY_MS, DEBEZIUM, ENVELOPES, LIMIT, OURS, PURE

Run = Mapping[str, Any]
Figures = Mapping[str, Sequence[Run]]

OF_LIMIT: Final = {
    "A": 1.10,
    "B": 1.10,
    "wide": 0.75,
    "update-full": 0.90,
    "mixed": 0.90,
    "tables": 0.40,
}
OF_DEBEZIUM: Final = {"A": 4.0, "B": 4.0, "wide": 4.0}
CPU_US: Final = {"A": 3.5, "B": 8.0, "wide": 7.0}
SYSTEM_OF_DEBEZIUM: Final = {"A": 0.5, "B": 0.5, "wide": 0.5}
_PURE_OF_LIMIT: Final = {"A": 0.70}
_RSS_MB: Final = 130.0
_RSS_MORE_MB: Final = {"wide": 150.0, "tables": 250.0, "huge": 200.0, "outage": 200.0}
_AWAY_CPU_PERCENT, _AWAY_MORE_MS = 10.0, 20.0
_STEADY, _AT_70 = "1,000 tx/s", "70 % of what it sustains"


@dataclass(frozen=True)
class Verdict:
    """One goal: what was found, and whether that is enough."""

    profile: str
    what: str
    found: float
    goal: float
    at_least: bool  # else at most
    unit: str = ""

    @property
    def met(self) -> bool:
        return self.found >= self.goal if self.at_least else self.found <= self.goal

    def __str__(self) -> str:
        sign = ">=" if self.at_least else "<="
        met = "met" if self.met else "not met"
        unit = f" {self.unit}" if self.unit else ""
        found = f"{self.found:.2f}{unit} (goal {sign} {self.goal:g}{unit})"
        return f"{self.profile}: {self.what}: {found}: {met}"


def ratio(figures: Figures, name: str, other: str) -> float:
    """Give the median of the ratios of the runs' rates: a machine's mood meets both."""
    pairs = zip(figures[name], figures[other], strict=True)
    return float(median(one["rows_per_s"] / two["rows_per_s"] for one, two in pairs))


def system_us(run: Run) -> float:
    """Give the CPU of a row, of walsender, program and broker; 0.0: not measured."""
    servers = [run.get(f"{one}_us_per_row", 0.0) for one in ("sender", "broker")]
    return float(run["cpu_us_per_row"] + sum(servers)) if all(servers) else 0.0


def ours(figures: Figures) -> str:
    """Give the fastest form of walstream that was measured; "" for none."""
    return next((name for name in OURS if figures.get(name)), "")


def verdicts(profile: str, figures: Figures) -> list[Verdict]:
    """Give those that this profile's figures can answer."""
    answer = _ANSWERS.get(profile, _drained)
    return answer(profile, figures)


def _drained(profile: str, figures: Figures) -> list[Verdict]:
    name = ours(figures)
    if not name:
        return []
    found = []

    def beside(which: str, other: str, goals: Mapping[str, float]) -> None:
        if profile in goals and other in figures:
            what = f"{which} / {other}, rows/s"
            value = ratio(figures, which, other)
            found.append(Verdict(profile, what, value, goals[profile], at_least=True))

    beside(name, LIMIT, OF_LIMIT)
    if PURE in figures:
        beside(PURE, LIMIT, _PURE_OF_LIMIT)
    beside(name, DEBEZIUM, OF_DEBEZIUM)
    if profile in CPU_US:
        used = median(run["cpu_us_per_row"] for run in figures[name])
        what = f"{name}, CPU a row"
        found.append(
            Verdict(profile, what, used, CPU_US[profile], at_least=False, unit="us")
        )
    found += _spent(profile, figures, name)
    return [*found, *_remembered(profile, figures)]


def _spent(profile: str, figures: Figures, name: str) -> list[Verdict]:
    """Hold all that a row costs the machine against Debezium's."""
    pairs = zip(figures[name], figures.get(DEBEZIUM, ()), strict=False)
    ratios = [
        system_us(one) / system_us(two)
        for one, two in pairs
        if system_us(one) and system_us(two)
    ]
    if profile not in SYSTEM_OF_DEBEZIUM or not ratios:
        return []
    what = f"{name} / {DEBEZIUM}, CPU of walsender, program and broker a row"
    most = SYSTEM_OF_DEBEZIUM[profile]
    return [Verdict(profile, what, median(ratios), most, at_least=False)]


def _remembered(profile: str, figures: Figures) -> list[Verdict]:
    most = _RSS_MORE_MB.get(profile, _RSS_MB)
    return [
        Verdict(
            profile,
            f"{name}, peak RSS of all its processes",
            max(run["rss_mb"] for run in figures[name]),
            most,
            at_least=False,
            unit="MB",
        )
        for name in OURS
        if figures.get(name)
    ]


def _latency(profile: str, figures: Figures) -> list[Verdict]:
    found = []
    for label, share, most in (
        (_STEADY, "p50_ms", 1.0),
        (_STEADY, "p99_ms", 10.0),
        (_AT_70, "p99_ms", 100.0),
    ):
        for name in OURS:
            told = figures.get(f"{name}, {label}", ())
            runs = [run for run in told if not run["void"]]
            if told:
                # where every run is void nothing is shown: that is not met
                value = median(run[share] for run in runs) if runs else math.inf
                what = f"{name}, {label}, {share[:3]}"
                found.append(
                    Verdict(profile, what, value, most, at_least=False, unit="ms")
                )
                break
    return found


def _network(profile: str, figures: Figures) -> list[Verdict]:
    found = []
    for answer_ms in AWAY_MS:
        for name in OURS:
            label = f"{name}, {answer_ms} ms away, {_STEADY}"
            told = figures.get(label, ())
            runs = [run for run in told if not run["void"]]
            for what, share, most, unit in (
                ("CPU", "cpu_percent", _AWAY_CPU_PERCENT, "% of a core"),
                ("p99", "p99_ms", 2 * answer_ms + _AWAY_MORE_MS, "ms"),
            ):
                if told:
                    value = median(run[share] for run in runs) if runs else math.inf
                    one = Verdict(
                        profile,
                        f"{label}, {what}",
                        value,
                        most,
                        at_least=False,
                        unit=unit,
                    )
                    found.append(one)
    return found


def _start(profile: str, figures: Figures) -> list[Verdict]:
    name = ours(figures)
    if not name:
        return []
    value = median(run["wall_s"] for run in figures[name])
    what = f"{name}, warm, to the first streamed row"
    return [Verdict(profile, what, value, 1.0, at_least=False, unit="s")]


def _backfill(profile: str, figures: Figures) -> list[Verdict]:
    peers = (("spark.read.jdbc, warm", 1.5), (DEBEZIUM, 5.0))
    return [
        Verdict(
            profile,
            f"walstream / {peer}, rows/s",
            ratio(figures, "walstream", peer),
            goal,
            at_least=True,
        )
        for peer, goal in peers
        if peer in figures
    ]


def _envelopes(profile: str, figures: Figures) -> list[Verdict]:
    peers = ((ours(figures), 0.6), (DEBEZIUM, 2.5))
    return [
        Verdict(
            profile,
            f"{ENVELOPES} / {peer}, rows/s",
            ratio(figures, ENVELOPES, peer),
            goal,
            at_least=True,
        )
        for peer, goal in peers
        if peer in figures
    ]


def _encoded(profile: str, figures: Figures) -> list[Verdict]:
    name = ours(figures)
    return [
        Verdict(
            profile,
            f"{form} / {name}, rows/s",
            ratio(figures, form, name),
            0.6,
            at_least=True,
        )
        for form in (ENVELOPES, AVRO)
        if form in figures
    ]


def _poll(profile: str, figures: Figures) -> list[Verdict]:
    value = ratio(figures, "walstream", "bare loop")
    what = "walstream / bare loop, rows/s"
    return [Verdict(profile, what, value, 0.6, at_least=True)]


def _consumer(profile: str, figures: Figures) -> list[Verdict]:
    return [
        Verdict(
            profile,
            f"{name} / {bare}",
            ratio(figures, name, bare),
            goal,
            at_least=True,
        )
        for name, bare, goal in (
            ("basic", "basic, bare", 0.5),
            ("idempotent", "idempotent, bare", 0.85),
            ("idempotent, pipeline", "idempotent, bare", 1.5),
        )
        if name in figures
    ]


_ANSWERS: Final[Mapping[str, Callable[[str, Figures], list[Verdict]]]] = {
    "latency": _latency,
    "network": _network,
    "outage": _remembered,
    "start": _start,
    "backfill": _backfill,
    "debezium": _envelopes,
    "formats": _encoded,
    "poll": _poll,
    "consumer": _consumer,
}
