"""The status lines at the bottom of the terminal: each source in one line, or a sum."""

from collections.abc import Iterator, Mapping
from typing import Final

from rich.text import Text

from walstream.cli.live.sentences import counted, plain_cause
from walstream.cli.output import duration
from walstream.sources.report import (
    BackfillReport,
    PollReport,
    RelayReport,
    SourceReport,
    StreamReport,
)
from walstream.status.worker_state import WorkerState, state_of
from walstream.telemetry.terminal import escape

Workers = Mapping[str, WorkerState]
"""Every source's worker, by the source's name."""

_BAR: Final = 10  # columns
_LONG_S: Final = 1.0  # a poll that takes longer has a line of its own
_STYLES: Final[Mapping[str, str]] = {
    "streaming": "green",
    "polling": "green",
    "backfilling": "cyan",
    "waiting": "yellow",
    "silent": "red",
    "failed": "red",
}
_STOPPING: Final = "draining: Ctrl-C again ends at once, what is in flight comes again"
_BESIDE: Final = frozenset({"reading", "waiting"})


def status_lines(
    workers: Workers, height: int, *, stopping: bool = False
) -> list[Text]:
    """Return a line for each source, or their sum where `height` has no room."""
    lines = [line for name in workers for line in _of_source(name, workers[name])]
    if len(lines) > max(height, 1):
        lines = [_sum(workers)]
    if stopping:
        lines.append(Text(_STOPPING, style="yellow", no_wrap=True, overflow="ellipsis"))
    return lines


def _of_source(name: str, worker: WorkerState) -> Iterator[Text]:
    state, code = state_of(worker) or ("stopped", 0)
    source = worker.report.source
    if (
        isinstance(source, StreamReport)
        and source.backfill is not None
        and state == "backfilling"
    ):
        yield _backfill(name, source.backfill)
        return
    said = [f"failed ({code})" if state == "failed" else state]
    error = worker.report.error
    if state == "waiting" and error is not None:
        said.append(_first_line(plain_cause(error.error)))
    elif isinstance(source, StreamReport):
        said += _stream(source)
    elif isinstance(source, RelayReport):
        said += _relay(source)
    elif isinstance(source, PollReport):
        said += _polls(source)
    waits = list(_sinks(worker))
    said[1:1] = waits
    yield _line(name, "yellow" if waits else _STYLES.get(state, ""), said)
    for parts in _tables(source):
        yield _line(name, "cyan", parts)


def _polls(report: PollReport) -> Iterator[str]:
    tables = report.tables.values()
    if rates := [one.rows_per_s for one in tables if one.rows_per_s is not None]:
        yield f"{sum(rates):,.0f} rows/s"
    yield f"{sum(one.rows for one in tables):,} rows"


def _tables(source: SourceReport | None) -> Iterator[list[str]]:
    """Yield what is read of single tables now."""
    if isinstance(source, PollReport):
        for table, told in source.tables.items():
            if told.poll and told.poll.s > _LONG_S:
                rows, seconds = told.poll.rows, told.poll.s
                figures = [f"{rows:,} rows", f"{rows / seconds:,.0f} rows/s"]
                yield [f"polling {table}", *figures]
    if isinstance(source, StreamReport):
        for table, beside in (source.beside or {}).items():
            if beside.state in _BESIDE:
                remark = [beside.remark] if beside.remark else []
                yield [f"backfilling {table}", f"{beside.rows:,} rows", *remark]


def _stream(report: StreamReport) -> Iterator[str]:
    if report.delivered_per_s is not None:
        yield f"{report.delivered_per_s:,.0f} changes/s"
    if report.lag_s is not None:
        yield f"lag {lag(report.lag_s)}"
    yield f"{report.delivered:,} sent"
    if report.held_by:
        yield f"held by {report.held_by}"
    if report.alarm:
        yield report.alarm


def _relay(report: RelayReport) -> Iterator[str]:
    if report.delivered_per_s is not None:
        yield f"{report.delivered_per_s:,.0f} records/s"
    if report.lag_records is not None:
        yield f"lag {report.lag_records:,} records"
    yield f"{report.delivered:,} sent"
    if report.upstream_away:
        yield report.upstream_away


def _sinks(worker: WorkerState) -> Iterator[str]:
    """Yield the sinks that are waited for, and why."""
    for name, sink in worker.report.sinks.items():
        if sink.waiting:
            why = plain_cause(_first_line(sink.outage.why)) if sink.outage else ""
            yield f"sink {name} waits" + (f": {why}" if why else "")
        elif sink.handler_waits:
            yield f"a handler of sink {name} waits"


def _backfill(name: str, told: BackfillReport) -> Text:
    filled = round(told.share * _BAR)
    line = _head(name).append("backfill ", style="not bold cyan")
    line.append("━" * filled, style="not bold cyan")
    line.append("─" * (_BAR - filled), style="not bold dim")
    if told.waits:
        said = [f"{told.rows:,} rows", _first_line(told.waits)]
    elif not told.chunks_done:
        said = [f"reading {counted(told.tables, 'table')}", duration(told.elapsed_s)]
    else:
        rows = f"{told.rows:,} rows"
        if 0 < told.share < 1:
            rows = f"{told.rows:,} of ~{about(told.rows / told.share)} rows"
        left = [f"{duration(told.left_s)} left"] if told.left_s is not None else []
        said = [rows, *left, f"{told.rows_per_s:,.0f}/s"]
    share = f" {told.share:>4.0%}  "
    return line.append(share + escape(" · ".join(said)), style="not bold")


def about(rows: float) -> str:
    """Return an estimate, to two digits: 210,000."""
    number = round(rows)
    step = 10 ** max(len(str(number)) - 2, 0)
    return f"{round(number / step) * step:,}"


def lag(seconds: float) -> str:
    """Return a lag: 1 ms, 0.4 s, 3.5 min."""
    if seconds < 0.1:  # noqa: PLR2004 - below that, a tenth says nothing
        return f"{max(seconds, 0.0) * 1000:.0f} ms"
    return duration(seconds)


def _sum(workers: Workers) -> Text:
    """Return one line for all."""
    states = [state for state, _ in filter(None, map(state_of, workers.values()))]
    flowing = sum(state in {"streaming", "polling", "backfilling"} for state in states)
    rate, delivered = 0.0, 0
    for worker in workers.values():
        found = worker.report.stream or worker.report.relay
        if found is not None:
            rate += found.delivered_per_s or 0.0
            delivered += found.delivered
    said = [f"{flowing} run", f"{rate:,.0f} changes/s", f"{delivered:,} sent"]
    others = {state for state in states if state in {"waiting", "failed", "silent"}}
    said += [f"{states.count(state)} {state}" for state in sorted(others)]
    style = "yellow" if others else "green"
    return _line(f"{len(workers)} sources", style, said)


def _head(name: str) -> Text:
    return Text(f"{escape(name)}  ", style="bold", no_wrap=True, overflow="ellipsis")


def _line(name: str, style: str, said: list[str]) -> Text:
    first, *rest = map(escape, said)
    line = _head(name).append(first, style=f"not bold {style}")
    return line.append("".join(f" · {part}" for part in rest), style="not bold")


def _first_line(text: str) -> str:
    return text.partition("\n")[0]
