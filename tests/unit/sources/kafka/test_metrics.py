"""Figures of a chained source."""

import structlog

from walstream.errors import Transient
from walstream.kafka.topic_limits import DEFAULT_LIMIT
from walstream.sources.figures import RelayFigures
from walstream.sources.kafka.lease import PartitionLease
from walstream.sources.kafka.metrics import (
    Lasting,
    RelayMetrics,
)
from walstream.sources.report import SinkReport
from walstream.telemetry.json_codec import Document


def test_figures_go_on_from_what_was_kept() -> None:
    figures = RelayMetrics(RelayFigures(ops=5, delivered=4, poisoned={"x": 1}))
    figures.read += 1
    figures.delivered += 1
    assert not figures.poison("x")
    assert figures.poison("y")
    report = figures.report()
    assert (report.ops, report.delivered) == (6, 5)
    assert report.poisoned == {"x": 2, "y": 1}
    assert report.lag_records is None
    assert RelayMetrics(figures.kept()).report().ops == 6


def test_what_sinks_dropped_is_kept() -> None:
    figures = RelayMetrics(RelayFigures(dropped={"a": 5, "b": 1}))
    figures.see_sinks({"a": SinkReport(dropped=7)})
    assert figures.kept().dropped == {"a": 7, "b": 1}
    assert figures.report().sinks == {"a": SinkReport(dropped=7)}


def test_causes_are_told_apart_up_to_a_number() -> None:
    figures = RelayMetrics(None)
    for number in range(300):
        figures.poison(str(number))
    assert len(figures.poisoned) == 101
    assert figures.poisoned["others"] == 200


def test_brokers_that_are_away_are_said_once() -> None:
    figures = RelayMetrics(None)
    with structlog.testing.capture_logs() as said:
        for away in ("away", "", "away", "away"):
            figures.see_away(away)
    assert [one["event"] for one in said] == ["away"]
    assert figures.report().upstream_away == "away"


def test_what_cannot_be_written_stops_nothing() -> None:
    written: list[Document] = []

    def write(document: Document) -> None:
        written.append(document)
        raise Transient("the disk is full")

    figures = RelayMetrics(None, write)
    figures.write()
    assert not written
    figures.write(now=True)
    assert list(written[0]) == ["figures"]


def test_records_are_counted_by_table_and_only_those_of_this_process() -> None:
    figures = RelayMetrics(RelayFigures(ops=5, poisoned={"x": 7}, dropped={"a": 9}))
    for table in (("public", "t"), ("public", "t"), ("", "u"), None):
        figures.count(table)
    figures.poison("x")
    figures.meter.sink("a")
    sink = SinkReport(dropped=10, tables={"public.t": {"dropped": 1}})
    figures.see_sinks({"a": sink})
    counted = figures.counts()
    ops = {name: one.ops for name, one in counted.tables.items()}
    assert ops == {"public.t": 2, "u": 1, "": 1}
    assert counted.poisoned == 1
    assert counted.sinks["a"].dropped == {"public.t": 1}


def test_limits_grow_both_ways() -> None:
    lasting = Lasting(PartitionLease(10_000))
    lasting.see(DEFAULT_LIMIT + 1)
    lasting.see(10)
    lasting.see(20)
    assert lasting.limits == (10, DEFAULT_LIMIT + 1)


def test_what_was_dropped_before_counts() -> None:
    lasting = Lasting(PartitionLease(10_000), 5)
    assert lasting.drop("a")
    assert not lasting.drop("a")
    assert lasting.drop("b")
    assert lasting.dropped == 8
