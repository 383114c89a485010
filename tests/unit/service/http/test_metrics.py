"""What is counted of sources of every kind, in every state of theirs."""

import re
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from tests.unit.service.http.conftest import Change, config, counted, snapshot, told
from walstream.config import Config
from walstream.service.http import app
from walstream.service.http import metrics as exposition
from walstream.service.http.board import Board
from walstream.service.http.catalog import METRICS
from walstream.sources.figures import RelayFigures
from walstream.sources.kafka.metrics import RelayMetrics
from walstream.sources.report import SinkReport
from walstream.telemetry.counts import ProcessCounts, SourceCounts
from walstream.telemetry.json_codec import document
from walstream.telemetry.meter import Meter, PollMeter

_TABLE = 'public.o"r\\d\ners'
_KAFKA = {"kind": "kafka", "producer": {"bootstrap.servers": "localhost:9092"}}
_ROW = {**_KAFKA, "format": "row", "topic": "row.{table}"}
_LASTING: dict[str, Any] = {"pid": 7, "exit_code": None, "lent": False, "stalls": []}

STATES: dict[str, dict[str, Any]] = {
    "flowing": {},
    "starting": {"state": "starting"},
    "waiting": {"state": "waiting"},
    "silent": {"heard_at": 0.0},
    "dead": {"pid": None, "died_with": -9},
    "lent": {"pid": None, "lent": True},
    "stopped": {"pid": None, "exit_code": 0, "state": "stopped"},
    "failed": {"pid": None, "exit_code": 3},
}
WELL = {"flowing", "starting", "lent", "stopped"}


def configured() -> Config:
    return Config.model_validate(
        {
            "http": {"listen": "127.0.0.1:0"},
            "sources": {
                "app": {
                    "kind": "postgres",
                    "dsn": "host=/run/postgresql",
                    "sinks": ["kafka"],
                },
                "legacy": {
                    "kind": "sql",
                    "url": "sqlite:////tmp/legacy",
                    "sinks": ["rows"],
                    "tables": {_TABLE: {"primary_key": "id"}},
                },
                "upstream": {
                    "kind": "kafka",
                    "topics": ["t"],
                    "consumer": {"bootstrap.servers": "localhost:9092"},
                    "sinks": ["chain"],
                },
            },
            "sinks": {
                "kafka": _KAFKA,
                "rows": _ROW,
                "chain": {**_KAFKA, "topic": "again.{schema}.{table}"},
            },
        }
    )


def polled(**changed: Any) -> dict[str, Any]:
    """Give what a worker tells of polled tables."""
    table = {"key": 41, "rows": 1000, "at": 1.0, "rows_per_s": 2.0, "missing_keys": 3}
    return base(
        state="polling", tables={_TABLE: table}, sinks={"rows": {"waiting": False}}
    ) | dict(changed)


def chained(figures: RelayMetrics, **changed: Any) -> dict[str, Any]:
    return {**base(state="streaming"), **document(figures.report()), **changed}


def base(**changed: Any) -> dict[str, Any]:
    lasting = {"died_with": None, "silent": False, "heard_at": time.monotonic()}
    return {**_LASTING, **lasting, "error": None, **changed}


def figures() -> RelayMetrics:
    """Give what a kafka source counts."""
    made = RelayMetrics(RelayFigures(ops=500, poisoned={"no op": 20}))
    made.read, made.lag = 512, 7
    for _ in range(11):
        made.count(("public", "orders"))
    made.poison("no op")
    made.count(None)
    made.meter.sink("chain").records = 9
    tables = {"public.x": {"dropped": 2}}
    sink = SinkReport(in_flight=1, dropped=2, records=9, tables=tables)
    made.see_sinks({"chain": sink})
    return made


def polls() -> ProcessCounts:
    meter = PollMeter()
    meter.begin(990)
    meter.see(1000)
    meter.polled(0.2, (0.1, 0.05, 0.001), well=True)
    return ProcessCounts(metrics=SourceCounts(polls={_TABLE: meter.report()}))


def all_kinds(changed: Mapping[str, Any], **over: Any) -> Board:
    made = Board(configured())
    of_chain = figures()
    sources = {
        "app": told(**changed),
        "legacy": polled(**changed),
        "upstream": chained(of_chain, **changed),
    }
    found = {
        "app": counted(),
        "legacy": polls(),
        "upstream": ProcessCounts(metrics=of_chain.counts()),
    }
    made.publish(snapshot({}, **{"sources": sources, "counted": found, **over}))
    return made


def samples(made: Board) -> dict[tuple[str, ...], float]:
    """Give each sample by its name and its labels' values, as the table has them."""
    truth = made.truth()
    assert truth is not None
    text = exposition.write(made.config, truth, "")[0].decode()
    found: dict[tuple[str, ...], float] = {}
    for family in text_string_to_metric_families(text):
        for one in family.samples:
            base = re.sub("_(bucket|sum|count)$", "", one.name)
            labels = (*METRICS[base].labels, "le")
            key = (
                one.name,
                *(one.labels[name] for name in labels if name in one.labels),
            )
            assert key not in found, f"twice: {key}"
            found[key] = one.value
    return found


def client(made: Board) -> TestClient:
    return TestClient(app.make(made, str), base_url="http://127.0.0.1")


def test_the_older_tools_dashboards_find_their_labels(board: Change) -> None:
    made = board()
    ours = config(metric_labels="psql-streamer")
    truth = made.truth()
    assert truth is not None
    text = exposition.write(ours, truth, "")[0].decode()
    labels = 'sourceName="app",sourceType="Source-PSQL",table="'
    assert f"source_events{{{labels}" in text
    assert 'sink_events{sinkName="kafka",sinkType="Sink-Kafka",table="' in text
    assert "sink_event_processing_time_sec_bucket{le=" in text
    assert 'walstream_ops_total{source="app",table=' in text
    assert 'name="' not in text


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("accept", ["", "application/openmetrics-text; version=1.0.0"])
def test_every_state_of_every_kind_can_be_read(state: str, accept: str) -> None:
    made = all_kinds(STATES[state])
    answer = client(made).get("/metrics", headers={"accept": accept})
    assert answer.status_code == 200
    read: Any = text_string_to_metric_families
    if accept:
        read = openmetrics.text_string_to_metric_families
    names = {one.name for one in read(answer.text)}
    assert names <= {name.removesuffix("_total") for name in METRICS}
    found = samples(made)
    for name, kind in (("app", "postgres"), ("legacy", "sql"), ("upstream", "kafka")):
        up = found["walstream_source_up", name, kind]
        assert up == float(state in WELL), name


@pytest.mark.parametrize("state", STATES)
def test_status_and_the_page_tell_of_every_kind(state: str) -> None:
    asked = client(all_kinds(STATES[state]))
    answer = asked.get("/status")
    assert answer.status_code == (200 if state in WELL else 500)
    page, stats = asked.get("/").text, asked.get("/stats").text
    for name in ("app", "legacy", "upstream"):
        assert f"source {name}: " in answer.text
        assert (f"source {name!r}: " in answer.text) == (state not in WELL)
        assert f'<h2 id="source/{name}">' in page
        assert f"source={name} " in stats
    assert "public.o&quot;r\\d\ners" in page
    assert len(stats.splitlines()) == 3 + 3 + 1  # sources, sinks, the polled table


def test_what_polls_and_chains_do_is_counted() -> None:
    found = samples(all_kinds({}))
    assert found["walstream_poll_rows_total", "legacy", _TABLE] == 10
    assert found["walstream_ops_total", "legacy", _TABLE] == 10
    assert found["walstream_delivered_total", "legacy", "rows"] == 10
    assert found["sink_events", "rows", "kafka", _TABLE] == 10
    assert found["walstream_poll_position", "legacy", _TABLE] == 41
    assert found["walstream_poll_seconds_count", "legacy", _TABLE] == 1
    phase = ("walstream_poll_phase_seconds_count", "legacy", _TABLE)
    assert found[*phase, "read", "success"] == 1
    assert found[*phase, "store", "error"] == 0
    assert found["walstream_ops_total", "upstream", "public.orders"] == 11
    assert found["source_events", "upstream", "kafka", "public.orders"] == 11
    assert found["walstream_ops_total", "upstream", ""] == 1
    assert found["walstream_poisoned_total", "upstream"] == 1
    assert found["walstream_delivered_total", "upstream", "chain"] == 9
    assert found["walstream_dropped_total", "upstream", "chain", "public.x"] == 2
    assert found["walstream_upstream_lag_records", "upstream"] == 7
    no_transactions = {"upstream", "legacy", "chain", "rows"}
    timed = {key for key in found if "processing_time" in key[0] or "latency" in key[0]}
    assert not {part for key in timed for part in key} & no_transactions


@pytest.mark.parametrize("state", STATES)
def test_what_was_counted_does_not_fall_with_the_worker(state: str) -> None:
    """What a state folder keeps goes back when a process is killed; counts do not."""
    gone: dict[str, Any] = {
        **STATES[state],
        "ops": 0,
        "delivered": 0,
        "poisoned": {},
        "tables": {},
        "sinks": {},
    }
    before, after = samples(all_kinds({})), samples(all_kinds(gone))
    counters = {name for name, metric in METRICS.items() if metric.kind == "counter"}
    for key, value in before.items():
        if key[0] in counters | {"source_events", "sink_events"}:
            assert after.get(key) == value, key


def test_nothing_is_counted_before_a_worker_told() -> None:
    nothing = ProcessCounts()
    made = all_kinds(
        {"state": "starting", "health": None},
        counted=dict.fromkeys(("app", "legacy", "upstream"), nothing),
    )
    named = {key[0] for key in samples(made)}
    counters = {name for name, metric in METRICS.items() if metric.kind == "counter"}
    assert named & counters == {"walstream_errors_total"}


@pytest.mark.parametrize("state", ["dead", "silent", "failed"])
def test_lag_grows_and_no_bytes_are_known_while_nobody_tells(
    board: Change, state: str
) -> None:
    gone = {**STATES[state], "current_at": time.time() - 100}
    if state != "silent":
        gone["lag_s"] = None  # as of a process that ended
    found = samples(board(**gone))
    assert found["walstream_replication_lag_seconds", "app"] >= 100
    assert ("walstream_replication_lag_bytes", "app") not in found
    assert found["walstream_slot_retained_wal_bytes", "app", "walstream"] == 4096


def test_what_a_detached_sink_gets_is_counted_on(board: Change) -> None:
    away = {"phase": "away", "slot": "c", "since": 1.0, "why": "slow", "waits": ""}
    meter = Meter()
    meter.tables.of("public.t").ops += 99
    meter.sink("kafka").delivered += 5
    counts = meter.report()
    sinks = {"kafka": replace(counts.sinks["kafka"], dropped={"public.t": 4})}
    metrics = replace(counts, sinks=sinks)
    own = ProcessCounts(metrics=metrics, errors={"transient": 1}, deaths=2)
    health = {**told()["health"], "retained_wal": 77, "spilled": 66}
    made = board(
        away={"kafka": away},
        sinks={},
        over={
            "away": {"app/kafka": base(slot="c", resume=None, health=health)},
            "counted": {"app": counted(), "app/kafka": own},
        },
    )
    found = samples(made)
    assert found["walstream_sink_up", "app", "kafka", "kafka"] == 0
    assert found["walstream_delivered_total", "app", "kafka"] == 12 + 5
    assert found["walstream_ops_total", "app", "public.t"] == 12
    assert found["walstream_dropped_total", "app", "kafka", "public.t"] == 1 + 4
    assert found["walstream_slot_retained_wal_bytes", "app", "c"] == 77
    assert found["walstream_slot_spilled_bytes", "app", "c"] == 66
    assert found["walstream_errors_total", "app", "died"] == 1 + 2
    asked = client(made)
    assert "detached" in asked.get("/status").text
    assert "✗ detached" in asked.get("/").text


def test_how_near_a_slot_is_to_being_given_up_is_told(board: Change) -> None:
    slot = "app", "walstream"
    found = samples(board())
    assert ("walstream_slot_safe_wal_bytes", *slot) not in found  # there is no limit
    assert found["walstream_slot_wal_status", *slot, "reserved"] == 1
    near = {**told()["health"], "safe_wal_size": -8192, "wal_status": "unreserved"}
    found = samples(board(health=near))
    assert found["walstream_slot_safe_wal_bytes", *slot] == -8192
    named = {key[3] for key in found if key[0] == "walstream_slot_wal_status"}
    assert named == {"unreserved"}


def test_large_transactions_are_told_as_far_as_the_role_may_see(board: Change) -> None:
    found = samples(board())
    slot = "app", "walstream"
    assert found["walstream_slot_spill_transactions_total", *slot] == 2
    assert found["walstream_slot_spill_bytes_total", *slot] == 5000
    assert found["walstream_slot_spilled_bytes", *slot] == 3000
    assert found["walstream_slot_alarm_spill_bytes", "app"] == 10 << 30
    made = board(health={**told()["health"], "spilled": None})
    silent = made.config.postgres_source("app").model_copy(update={"alarm_spill": 0})
    made.config = made.config.model_copy(update={"sources": {"app": silent}})
    found = samples(made)
    assert found["walstream_slot_spill_bytes_total", *slot] == 5000
    assert ("walstream_slot_spilled_bytes", *slot) not in found
    assert ("walstream_slot_alarm_spill_bytes", "app") not in found


def test_the_time_for_which_a_limit_held_is_told(board: Change) -> None:
    assert samples(board())["walstream_limit_held_seconds_total", "app"] == 1.5


def test_a_backfill_is_told_and_its_sink_that_waits(board: Change) -> None:
    waits = {"waiting": True, "in_flight": 0, "records": 0}
    found = samples(board(state="backfilling", sinks={"kafka": waits}))
    assert found["walstream_sink_up", "app", "kafka", "kafka"] == 0
    assert found["walstream_backfill_rows_total", "app"] == 5
    assert found["walstream_backfill_messages_total", "app", "refused"] == 2


def test_a_sink_of_a_source_that_has_no_more_to_do_is_up(board: Change) -> None:
    found = samples(board(pid=None, exit_code=0))
    assert found["walstream_sink_up", "app", "kafka", "kafka"] == 1
    found = samples(board(pid=None, exit_code=3))
    assert found["walstream_sink_up", "app", "kafka", "kafka"] == 0


def test_counts_of_two_processes_are_one() -> None:
    twice = polls() + polls()
    assert twice.metrics.polls[_TABLE].rows == 20
    chain = figures().counts()
    assert (chain + chain).poisoned == 2


def test_nothing_is_written_twice_for_one_report_but_time_goes_on() -> None:
    now = [10.0]
    made = all_kinds({})
    truth = made.truth()
    assert truth is not None
    written = exposition.CachedMetrics(lambda: now[0])
    first, _ = written.of(made.config, truth, "")
    assert written.of(made.config, truth, "")[0] is first
    openmetrics_text, kind = written.of(
        made.config, truth, "application/openmetrics-text"
    )
    assert (openmetrics_text is first, "openmetrics" in kind) == (False, True)
    again, _ = written.of(made.config, truth, "")
    now[0] += 0.6
    assert written.of(made.config, truth, "")[0] is not again
    other = all_kinds({}, made_at=time.monotonic() + 1).truth()
    assert other is not None
    last, _ = written.of(made.config, truth, "")
    assert written.of(made.config, other, "")[0] is not last
