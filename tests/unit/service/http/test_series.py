"""Samples of the charts, rates of tables and latencies of sinks."""

from dataclasses import replace

import pytest

from tests.unit.service.http.conftest import snapshot, told
from walstream.service.http.series import EVERY_S, SAMPLES, ChartSpan, Series
from walstream.telemetry.counts import ProcessCounts
from walstream.telemetry.meter import Meter


def counted(ops: int, latencies: int = 0) -> ProcessCounts:
    meter = Meter()
    meter.tables.of("public.t").ops += ops
    for _ in range(latencies):
        meter.sink("kafka").latency.observe(0.004)
    meter.sink("kafka")
    return ProcessCounts(metrics=meter.report())


def test_samples_are_taken_every_two_seconds_and_a_dead_worker_leaves_a_gap() -> None:
    series, now = Series(), 0.0
    for pid in (7, None):
        series.see(snapshot(told(pid=pid)), now)
        series.see(snapshot(told(pid=pid)), now + 0.5)  # too soon
        now += EVERY_S
    assert [one.ops_per_s for one in series.minutes["app"]] == [3.0, None]


def test_samples_are_bounded_also_those_of_an_hour() -> None:
    series = Series()
    made = snapshot(told())
    for step in range(SAMPLES * 12 + 30):
        series.see(made, step * EVERY_S)
    assert len(series.minutes["app"]) == len(series.hour["app"]) == SAMPLES
    assert ChartSpan.HOUR.seconds == 3600.0
    assert ChartSpan.MINUTES.seconds == 300.0


def test_an_hour_keeps_the_peak_of_a_lag_and_the_mean_of_a_rate() -> None:
    series = Series()
    for step in range(12):
        lag_s = 90.0 if step == 3 else 1.0
        made = told(lag_s=lag_s, ops_per_s=float(step))
        series.see(snapshot(made), step * EVERY_S)
    (sample,) = series.hour["app"]
    assert (sample.lag_s, sample.ops_per_s) == (90.0, 5.5)


def test_a_source_that_is_gone_is_forgotten() -> None:
    series = Series()
    series.see(snapshot(told()), 0.0)
    series.see(snapshot(told(), sources={}), EVERY_S)
    assert series.minutes == {}


def test_a_tables_rate_is_its_growth_over_ten_seconds() -> None:
    series = Series()
    for step in range(10):
        made = replace(snapshot(told()), counted={"app": counted(100 * step)})
        series.see(made, step * EVERY_S)
    assert series.table_rates("app") == pytest.approx({"public.t": 50.0})
    assert series.table_rates("other") == {}


def test_latencies_are_those_since_the_first_sample_also_of_a_detached_sink() -> None:
    series = Series()
    for step, count in enumerate((10, 30)):
        own = {"app": counted(0, count), "app/kafka": counted(0, count)}
        series.see(replace(snapshot(told()), counted=own), step * EVERY_S)
    found = series.latency("app", "kafka")
    assert found is not None
    assert sum(found.counts) == 40
    assert series.latency("app", "other") is None


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("5m", ChartSpan.MINUTES),
        ("1h", ChartSpan.HOUR),
        ("<script>", ChartSpan.MINUTES),
    ],
)
def test_a_query_names_the_span(text: str, span: ChartSpan) -> None:
    assert ChartSpan.of(text) is span
