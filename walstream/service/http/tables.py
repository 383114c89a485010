"""The page's tables: sources, sinks, tables, backfills, events. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Final

from walstream.config import Config
from walstream.config.sink import KafkaSinkConfig
from walstream.errors import WalstreamError
from walstream.records.router import Router, RoutingRules
from walstream.service.http.event_log import Event
from walstream.service.http.figures import (
    NONE,
    duration,
    listed,
    moment,
    number,
    plural,
    rate,
)
from walstream.service.http.latency import percentile
from walstream.service.http.series import Series
from walstream.service.http.table import Cell, Row, table
from walstream.sources.postgres.backfill.status import BackfillStatus
from walstream.status.model import SinkStatus, SourceStatus
from walstream.telemetry.counts import TableCounts
from walstream.telemetry.meter import OTHERS

_LOOKS: Final = {"delivering": ("good", "●"), "waiting": ("warn", "◌")}
_CALM: Final = frozenset({"starting", "new", "lent", "stopped"})  # and so its sinks
_SIGNS: Final = {"good": "●", "calm": "◌", "warn": "!", "bad": "✗"}
_TABLES: Final = 25  # rows of a table of tables
_EVENTS: Final = 20
_CAPTURED: Final = "Tables (ops read since walstream started)"
_P50, _P99 = 0.5, 0.99


def overview(sources: Sequence[SourceStatus], states: Mapping[str, Cell]) -> str:
    """Show many sources in a line each, with links to them."""
    if len(sources) < 2:  # noqa: PLR2004
        return ""
    rows: list[Row] = [
        (
            one.name,
            Cell(one.name, href=f"#source/{one.name}"),
            [
                states[one.name],
                Cell(_lag(one), right=True),
                Cell(_per_s(one.ops_per_s), right=True),
                Cell(number(one.delivered), right=True),
            ],
        )
        for one in sources
    ]
    heads = ["Source", "State", "Lag", "Read", "Total delivered"]
    return f'<section class="card">{table("sources", "Sources", heads, rows)}</section>'


def _lag(source: SourceStatus) -> str:
    if source.kind == "kafka":
        known = source.lag_records is not None
        return plural(source.lag_records or 0, "record") if known else NONE
    return duration(source.lag_s)


def _per_s(value: float | None) -> str:
    return NONE if value is None else f"{rate(value)}/s"


def sinks(source: SourceStatus, key: str, series: Series) -> str:
    """Show where a source's ops go, and how fast."""
    rows: list[Row] = [
        (sink.name, sink.name, _sink(source, sink, series)) for sink in source.sinks
    ]
    heads = ["Sink", "Kind", "State", "Latency p50", "p99"]
    heads += ["In flight", "Dropped", "Failed or parked"]
    return table(f"{key}/sinks", "Sinks (latency: last 5 min)", heads, rows)


def _sink(source: SourceStatus, sink: SinkStatus, series: Series) -> list[Cell]:
    times = series.latency(source.name, sink.name)
    p50, p99 = (
        duration(percentile(times, share)) if times else NONE for share in (_P50, _P99)
    )
    return [
        Cell(sink.kind),
        _state(sink.state, calm=source.state in _CALM and not source.exit_code),
        Cell(p50, right=True),
        Cell(p99, right=True),
        Cell(number(sink.in_flight), right=True),
        Cell(number(sink.dropped), right=True),
        Cell(number((sink.failed or 0) + (sink.parked or 0)), right=True),
    ]


def captured(
    source: SourceStatus,
    key: str,
    counted: Mapping[str, TableCounts],
    rates: Mapping[str, float],
    config: Config,
) -> str:
    """Show the tables of which most was read, with their topics."""
    ranked = sorted(counted, key=lambda name: (-counted[name].ops, name))
    shown = ranked[:_TABLES]
    topics = _topics(source.name, config)
    dropped: dict[str, int] = {}
    for sink in source.sinks:
        for name, counts in sink.tables.items():
            dropped[name] = dropped.get(name, 0) + counts.get("dropped", 0)
    rows: list[Row] = [
        (
            name,
            _table_name(name),
            [
                Cell(", ".join(dict.fromkeys(_topics_of(topics, name))), whole=True),
                Cell(_per_s(rates.get(name)), right=True),
                Cell(number(counted[name].ops), right=True),
                Cell(number(dropped.get(name, 0)), right=True),
            ],
        )
        for name in shown
    ]
    left = len(ranked) - len(shown)
    ops = sum(counted[name].ops for name in ranked[_TABLES:])
    more = (
        f"and {plural(left, 'table')} more with {ops:,} ops: /metrics has each"
        if left
        else ""
    )
    heads = ["Table", "Topic", "Read", "Total", "Dropped"]
    return table(f"{key}/captured", _CAPTURED, heads, rows, more)


def _table_name(name: str) -> str:
    if name == OTHERS:
        return "all other tables"
    return name or "records without a table"


def _topics(source: str, config: Config) -> list[Router]:
    found = (config.sinks[name] for name in config.sources[source].sinks)
    return [
        Router(source, RoutingRules.of(sink))
        for sink in found
        if isinstance(sink, KafkaSinkConfig)
    ]


def _topics_of(routers: Sequence[Router], full_name: str) -> Iterator[str]:
    if not full_name or full_name == OTHERS:
        return
    schema, _, name = full_name.partition(".")
    for router in routers:
        try:
            topic = router.topic(schema, name)
        except WalstreamError:  # the source says so itself
            continue
        yield topic or "no topic: dropped"


def polled(source: SourceStatus, key: str) -> str:
    """Show how far each table of a sql source is."""
    shown = list(source.tables.items())[:_TABLES]
    rows: list[Row] = [
        (
            name,
            name,
            [
                Cell(number(one.position), right=True),
                Cell(number(one.rows), right=True),
                Cell(_per_s(one.rows_per_s), right=True),
                Cell(number(one.missing_keys), right=True),
                Cell(moment(one.last_row_at), whole=True),
            ],
        )
        for name, one in shown
    ]
    left = len(source.tables) - len(shown)
    more = f"and {plural(left, 'table')} more: /stats has each" if left else ""
    heads = ["Table", "Position", "Rows", "Rows/s", "Missing keys", "Last row"]
    return table(f"{key}/tables", "Polled tables", heads, rows, more)


def backfill(source: SourceStatus, key: str) -> str:
    """Show how far the backfill of existing rows is."""
    found = source.backfill
    text = ""
    if found is not None and found.state != "done":
        text = _progress(source.name, found)
    going = [(name, one) for name, one in source.beside.items() if one.state != "done"]
    rows: list[Row] = [
        (
            name,
            name,
            [
                _beside(one.state),
                Cell(number(one.rows), right=True),
                Cell(one.error or one.remark, whole=True),
            ],
        )
        for name, one in going[:_TABLES]
    ]
    left = len(going) - len(rows)
    heads = ["Table", "State", "Rows", "Waits for"]
    more = f"and {plural(left, 'table')} more" if left else ""
    beside = table(f"{key}/beside", "Incremental backfill", heads, rows, more)
    return f'<div data-k="{escape(key)}/backfill">{text}</div>{beside}'


def _beside(state: str) -> Cell:
    look = "bad" if state == "error" else "calm"
    return Cell(f"{_SIGNS[look]} {state}", look=look)


def _progress(name: str, found: BackfillStatus) -> str:
    """Write the share, the estimate and the rows of one that is not done."""
    said = [found.state]
    bar = ""
    if found.share is not None:
        share = f"{found.share:.0%}"
        said.append(share)
        bar = (
            f'<progress max="1" value="{found.share:.3f}"'
            f' aria-label="Backfill of {escape(name)}">{share}</progress>'
        )
    if found.left_s is not None:
        said.append(f"about {duration(found.left_s)} left")
    said.append(f"{number(found.rows)} rows delivered")
    if found.rows_per_s is not None:
        said.append(f"{rate(found.rows_per_s)} rows/s")
    said.append(f"{plural(len(found.tables), 'table')} left")
    waits = f'<p class="warn">! {escape(found.waits)}</p>' if found.waits else ""
    names = f'<p class="soft">{escape(listed(found.tables))}</p>'
    return f"<h3>Backfill</h3><p>{escape(' · '.join(said))}</p>{bar}{names}{waits}"


def events(found: Sequence[Event]) -> str:
    """Show the last events of all sources, the newest first."""
    lines = "".join(
        f'<li><time class="soft">{_clock(one.at)}</time>'
        f' <span class="state {one.look}">{_SIGNS[one.look]} {escape(one.name)}</span>'
        f" {escape(one.what)}{_times(one.count)}</li>"
        for one in found[:_EVENTS]
    )
    if not lines:
        return ""
    return (
        '<section class="card" aria-labelledby="events">'
        '<h2 id="events">Recent events</h2>'
        f'<ol class="events" id="events-list" data-k="events">{lines}</ol></section>'
    )


def _clock(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}"


def _times(count: int) -> str:
    return f' <span class="soft">({count:,} times)</span>' if count > 1 else ""


def _state(name: str, *, calm: bool) -> Cell:
    look, sign = _LOOKS.get(name, ("calm", "◌") if calm else ("bad", "✗"))
    return Cell(f"{sign} {name}", look=look)
