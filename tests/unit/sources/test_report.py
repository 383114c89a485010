"""A worker's line says what the worker reports, and what it counted."""

import json

import pytest

from walstream.pipeline.outage import Outage
from walstream.postgres.slot_health import SlotHealth
from walstream.sources.report import (
    BackfillLeft,
    BackfillReport,
    DetachedReport,
    ErrorReport,
    IncrementalReport,
    PollReport,
    PollRun,
    RelayReport,
    SinkReport,
    SourceReport,
    StreamReport,
    TableReport,
    WorkerAnswer,
    WorkerReport,
    decode,
    encode,
)
from walstream.telemetry.counts import ProcessCounts, SourceCounts
from walstream.telemetry.meter import Meter, PollMeter

SINKS = {
    "kafka": SinkReport(
        waiting=True,
        outage=Outage("refused", "start it", refused=True),
        in_flight=3,
        tables={"public.t": {"dropped": 1}},
    ),
    "log": SinkReport(),
}
STREAM = StreamReport(
    resume="0/1000",
    ops=7,
    lag_s=0,
    sinks=SINKS,
    health=SlotHealth(1, "reserved", None, 1 << 40, spilled=5),
    backfill=BackfillReport(
        tables=1,
        chunks=2,
        chunks_done=1,
        rows=3,
        bytes=4,
        rows_per_s=5.0,
        share=0.5,
        left_s=None,
    ),
    beside={"public.t": IncrementalReport(3, "reading", "")},
    away={"log": DetachedReport("away", "s_log", 1.0, "slow")},
    backfill_record=BackfillLeft(9, ("public.t",), failed={"public.u": "broken"}),
    slot="s",
)
POLLS = PollReport(
    tables={"t": TableReport(key=5, oldest_gap=1.0, poll=PollRun(1.0, 2))}, sinks=SINKS
)
RELAY = RelayReport(ops=3, poisoned={"no op": 2}, unstored="no right", sinks=SINKS)


def counts() -> ProcessCounts:
    meter, poll = Meter(), PollMeter()
    meter.sink("kafka").deliver(3, 0, 0.0, meter.tables.of("public.t"))
    poll.polled(0.1, (0.1, 0.2, 0.3), well=True)
    found = meter.report()
    metrics = SourceCounts(
        tables=found.tables, sinks=found.sinks, polls={"t": poll.report()}, poisoned=1
    )
    return ProcessCounts(metrics=metrics, errors={"transient": 2})


@pytest.mark.parametrize("source", [None, STREAM, StreamReport(), POLLS, RELAY])
def test_a_line_is_read_as_it_was_written(source: SourceReport | None) -> None:
    report = WorkerReport(
        state="waiting",
        error=ErrorReport(at=1.0, error="away", hint="wait", exit_code=5),
        answers={"3": WorkerAnswer("it is still starting", 5)},
        source=source,
    )
    counted = counts()
    line = encode(report, counted)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert decode(line) == (report, counted)


def test_a_source_s_own_fields_stand_among_the_workers() -> None:
    """As a supervisor of before an upgrade reads them, and adds up the counts."""
    told = json.loads(encode(WorkerReport(source=STREAM), ProcessCounts()))
    assert (told["state"], told["ops"], told["resume"]) == ("starting", 7, "0/1000")
    assert "source" not in told
    assert told["errors"] == {}
    assert told["metrics"] == {
        "tables": {},
        "sinks": {},
        "polls": {},
        "backfill_messages": {},
    }


@pytest.mark.parametrize("cut", [1, 20, -3])
def test_a_line_that_is_cut_is_none(cut: int) -> None:
    line = encode(WorkerReport(source=STREAM), counts())
    with pytest.raises(ValueError):  # noqa: PT011 - the standard library's words
        decode(line[:cut])


def test_what_lasts_is_what_no_process_changes() -> None:
    lasting = STREAM.lasting
    assert (lasting.ops, lasting.away, lasting.beside) == (
        STREAM.ops,
        STREAM.away,
        STREAM.beside,
    )
    assert (lasting.lag_s, lasting.sinks, lasting.backfill) == (None, {}, None)
    assert POLLS.lasting == PollReport(tables=POLLS.tables)
    assert RELAY.lasting == RelayReport(ops=3)


def test_a_report_finds_its_own_kind() -> None:
    assert WorkerReport(source=STREAM).stream is STREAM
    assert WorkerReport(source=STREAM).polls is None
    assert WorkerReport(source=STREAM).relay is None
    assert WorkerReport(source=POLLS).polls is POLLS
    assert WorkerReport(source=RELAY).relay is RELAY
    assert WorkerReport(source=RELAY).sinks == SINKS
    assert WorkerReport().sinks == {}
