"""Counts of two processes become one."""

import pytest

from walstream.telemetry.counts import (
    HistogramCounts,
    PollCounts,
    ProcessCounts,
    SinkCounts,
    SourceCounts,
    TableCounts,
)


def times(*counts: int) -> HistogramCounts:
    return HistogramCounts(counts, float(sum(counts)))


def table(ops: int) -> TableCounts:
    return TableCounts(ops, times(ops, 1))


def sink(ops: int, *names: str) -> SinkCounts:
    tables = {name: table(ops) for name in names}
    return SinkCounts(tables, times(ops), ops, 1, dict.fromkeys(names, ops))


def test_a_table_or_sink_that_one_alone_has_stays() -> None:
    one = SourceCounts(tables={"a": table(1)}, sinks={"k": sink(1, "a")})
    both = one + SourceCounts(
        tables={"a": table(2), "b": table(5)}, sinks={"k": sink(2, "a", "b")}
    )
    assert both.tables == {"a": TableCounts(3, times(3, 2)), "b": table(5)}
    assert both.sinks["k"] == SinkCounts(
        {"a": TableCounts(3, times(3, 2)), "b": table(2)},
        times(3),
        delivered=3,
        errors=2,
        dropped={"a": 3, "b": 2},
    )
    assert both + SourceCounts() == both == SourceCounts() + both


def test_polls_are_added_by_outcome_and_phase() -> None:
    one = PollCounts(1, times(1), {"success": {"read": times(1)}})
    other = PollCounts(2, times(2), {"success": {"read": times(2)}, "error": {}})
    phases = {"success": {"read": times(3)}, "error": {}}
    assert one + other == PollCounts(3, times(3), phases)


def test_what_a_kind_of_source_does_not_count_stays_unknown() -> None:
    none, some = SourceCounts(), SourceCounts(poisoned=2)
    assert (none + none).poisoned is None
    assert (none + some).poisoned == (some + none).poisoned == 2
    assert (some + some).poisoned == 4


def test_errors_and_deaths_are_added() -> None:
    one = ProcessCounts(errors={"transient": 1}, deaths=1)
    both = one + ProcessCounts(errors={"transient": 2, "config": 1})
    assert both == ProcessCounts(errors={"transient": 3, "config": 1}, deaths=1)


def test_histograms_of_other_bounds_are_not_added() -> None:
    with pytest.raises(ValueError, match="zip"):
        times(1) + times(1, 2)
