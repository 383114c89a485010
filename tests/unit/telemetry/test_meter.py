"""Counts that only grow."""

from tests.support.runtime import altered
from walstream.telemetry.counts import HistogramCounts
from walstream.telemetry.meter import (
    LATENCY_S,
    OTHERS,
    Histogram,
    Meter,
    PollMeter,
    Rate,
    TableMeters,
)


def test_a_histogram_counts_between_its_bounds() -> None:
    histogram = Histogram((1.0, 2.0))
    for seconds in (0.5, 1.0, 1.5, 9.0):
        histogram.observe(seconds)
    assert histogram.report() == HistogramCounts((2, 1, 1), 12.0)


def test_a_table_is_counted_in_one_place_and_too_many_together() -> None:
    meters = TableMeters()
    assert meters.of("a") is meters.of("a")
    for number in range(600):
        meters.of(f"t{number}").ops += 1
    found = meters.report()
    assert len(found) == 501
    assert sum(one.ops for one in found.values()) == 600
    assert found[OTHERS].ops == 101


def test_a_target_that_is_away_is_one_error_however_long() -> None:
    sink = Meter().sink("kafka")
    for waiting in (False, True, True, False, True):
        sink.see(waiting=waiting)
    assert sink.errors == 2


def test_polled_rows_go_on_with_each_thread_and_begin_with_none() -> None:
    meter = PollMeter()
    for first, last in ((1000, 1010), (1005, 1006)):  # five were not stored
        meter.begin(first)
        meter.see(last)
    meter.polled(0.2, (0.0, 0.0, 0.0), well=True)
    report = meter.report()
    assert report.rows == 11
    assert sum(report.seconds.counts) == 1


def test_a_polls_time_is_told_apart_by_what_it_went_into_and_how_it_ended() -> None:
    meter = PollMeter()
    meter.polled(0.1, (0.0, 0.0, 0.0), well=True)  # it found nothing
    meter.polled(3.0, (2.0, 0.5, 0.25), well=True)
    meter.polled(5.0, (0.0, 0.0, 0.0), well=False)
    phases = meter.report().phases
    sums = {phase: one.sum for phase, one in phases["success"].items()}
    assert sums == {"read": 2.0, "publish": 0.5, "store": 0.25}
    assert sum(phases["success"]["read"].counts) == 1
    assert sum(phases["error"]["store"].counts) == 1


def test_a_transaction_delivered_whole_is_observed_once() -> None:
    meter = Meter()
    meter.sink("kafka").deliver(3, 0, 0.0, meter.tables.of("t"))
    report = meter.report().sinks["kafka"]
    assert report.delivered == 3
    assert sum(report.latency.counts) == 1
    assert len(report.latency.counts) == len(LATENCY_S) + 1
    assert sum(report.tables["t"].seconds.counts) == 1


def test_the_clocks_are_looked_at_once_a_turn() -> None:
    """With one-row transactions two looks for each would be a tenth of all."""
    looks = [10.0, 20.0, 30.0]
    with altered(perf_counter=lambda: looks.pop(0)):
        meter = Meter()
        sink, table = meter.sink("kafka"), meter.tables.of("t")
        for began in (9.0, 8.0):
            sink.deliver(1, 0, began, table)
        assert looks == [20.0, 30.0]
        sink.turn()
        sink.deliver(1, 0, 12.0, table)
        sink.deliver(1, 0, 21.0, table)  # it began behind the look
    assert looks == [30.0]
    found = sink.tables.of("t").seconds.report()
    assert sum(found.counts) == 4
    assert found.sum == 1.0 + 2.0 + 8.0 + 0.0


def test_one_look_knows_no_rate() -> None:
    assert Rate().of(5.0, 1000) == 0


def test_it_is_the_growth_a_second() -> None:
    rate = Rate()
    rate.of(100.0, 7)
    assert rate.of(102.0, 27) == 10
    assert rate.of(102.0, 27) == 10  # twice at one moment


def test_what_is_long_ago_does_not_count() -> None:
    rate = Rate()
    rate.of(0.0, 0)
    rate.of(10.0, 1000)
    assert rate.of(20.0, 1000) == 0
    assert rate.of(60.0, 5000) == 0  # nobody looked meanwhile: it is not known
