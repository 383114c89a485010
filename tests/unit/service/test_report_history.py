"""What is known of a worker by what its processes reported."""

from dataclasses import replace

import pytest

from walstream.pipeline.outage import Outage
from walstream.service.report_history import ReportHistory
from walstream.sources.report import (
    ErrorReport,
    SinkReport,
    StreamReport,
    WorkerReport,
    encode,
)
from walstream.telemetry.counts import ProcessCounts, SourceCounts

START = 1000.0


def started() -> ReportHistory:
    made = ReportHistory()
    made.begin(START)
    return made


def hear(
    history: ReportHistory,
    report: WorkerReport,
    at: float = START + 1,
    poisoned: int = 0,
) -> None:
    counts = ProcessCounts(metrics=SourceCounts(poisoned=poisoned))
    history.hear(encode(report, counts), at)


def turning(state: str, turn_s: float) -> WorkerReport:
    return WorkerReport(state=state, source=StreamReport(turn_s=turn_s))


def test_who_said_nothing_yet_is_starting_and_who_says_nothing_more_silent() -> None:
    history = started()
    assert (history.has_spoken, history.is_silent(START + 10)) == (False, False)
    hear(history, WorkerReport())
    assert (history.has_spoken, history.is_silent(START + 2)) == (True, False)
    assert history.is_silent(START + 10)
    history.end()
    history.begin(START + 20)
    assert not history.is_silent(START + 30)


@pytest.mark.parametrize(
    ("state", "turn_s", "silent_s", "hangs"),
    [
        ("streaming", 9.0, 0.0, False),
        ("streaming", 10.0, 0.0, True),
        ("waiting", 600.0, 0.0, False),  # for a server
        ("streaming", 0.1, 10.0, True),
    ],
)
def test_it_hangs_when_it_is_silent_or_its_loop_does_not_turn(
    state: str, turn_s: float, silent_s: float, *, hangs: bool
) -> None:
    history = started()
    hear(history, turning(state, turn_s), START + 100)
    assert history.hangs(START + 100 + silent_s) == hangs


@pytest.mark.parametrize(("lived_s", "hangs"), [(110.0, False), (121.0, True)])
def test_a_first_word_may_take_long_but_not_for_ever(
    lived_s: float, *, hangs: bool
) -> None:
    assert started().hangs(START + lived_s) == hangs


@pytest.mark.parametrize(
    ("state", "turn_s", "idle_s"), [("streaming", 29.5, 30.5), ("waiting", 600.0, 1.0)]
)
def test_who_streams_is_idle_since_its_last_turn_began(
    state: str, turn_s: float, idle_s: float
) -> None:
    history = started()
    assert history.idle_s(START + 5) == 5
    hear(history, turning(state, turn_s), START + 100)
    assert history.idle_s(START + 101) == idle_s


def test_what_stalls_is_told_of_the_process_that_runs_alone() -> None:
    history = started()
    hear(history, turning("streaming", 12.0))
    (stall,) = history.stalls(START + 1)
    assert "its loop hangs" in stall
    history.begin(START + 5)
    assert history.stalls(START + 5) == ()


def test_a_sink_that_is_refused_for_its_credentials_is_noticed() -> None:
    history = started()
    assert not history.sink_is_refused
    for refused in (False, True):
        refuses = SinkReport(outage=Outage("", refused=refused))
        sinks = {"j": SinkReport(), "k": refuses}
        history.report = WorkerReport(source=StreamReport(sinks=sinks))
        assert history.sink_is_refused == refused
    history.end()
    assert not history.sink_is_refused


@pytest.mark.parametrize(
    ("report", "flows"),
    [
        (WorkerReport(state="polling"), True),
        (WorkerReport(state="waiting"), False),
        (WorkerReport(state="failed", flowed=True), True),  # for a moment
    ],
)
def test_who_streams_or_streamed_flows(report: WorkerReport, *, flows: bool) -> None:
    history = started()
    assert not history.flows
    hear(history, report)
    assert history.flows == flows


def test_what_lasts_is_told_on_until_the_next_process_tells() -> None:
    error = ErrorReport(error="away")
    stream = StreamReport(ops=7, lag_s=1.0, sinks={"kafka": SinkReport()})
    history = started()
    history.report = WorkerReport(state="streaming", error=error, source=stream)
    history.end()
    assert history.error == error
    lasts = WorkerReport(error=error, source=StreamReport(ops=7))
    assert history.known() == lasts
    history.report = WorkerReport(state="waiting")  # it has not opened its state yet
    assert history.known() == replace(lasts, state="waiting", error=None)
    history.report = WorkerReport(source=StreamReport(ops=8))
    assert history.known() == history.report


def test_a_report_that_is_cut_changes_nothing() -> None:
    history = started()
    hear(history, WorkerReport(state="streaming"), poisoned=1)
    with pytest.raises(ValueError):  # noqa: PT011 - the parser's own words
        history.hear(encode(WorkerReport(), ProcessCounts())[:20], START + 2)
    assert history.report == WorkerReport(state="streaming")
    assert history.counts.metrics == SourceCounts(poisoned=1)
    assert not history.is_silent(START + 3)  # the next one tells


def test_lines_that_are_no_reports_are_silence() -> None:
    """Else what the last report said looks current."""
    history = started()
    hear(history, WorkerReport(state="streaming"))
    for at in range(2, 10):
        with pytest.raises(ValueError):  # noqa: PT011 - the parser's own words
            history.hear(b'a print {"state":"streaming"}', START + at)
    assert history.is_silent(START + 10)
    assert history.hangs(START + 10)


def test_counts_go_on_with_the_next_process() -> None:
    history = started()
    hear(history, WorkerReport(), poisoned=5)
    history.end()
    history.begin(START + 5)
    hear(history, WorkerReport(), START + 6, poisoned=2)
    assert history.counts.metrics == SourceCounts(poisoned=7)
