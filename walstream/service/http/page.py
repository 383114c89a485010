"""The page: one document, written for each request, which needs no script.

What changes is in elements with `data-k`, by which the script finds it again. The
browser computes no figure.
"""

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from importlib import resources
from typing import Final, NamedTuple

from walstream import __version__
from walstream.config import Config, PostgresSource
from walstream.service.http import chart, repair, tables
from walstream.service.http.board import Truth
from walstream.service.http.event_log import Event
from walstream.service.http.figures import duration, moment, number, plural, rate, size
from walstream.service.http.series import ChartSpan, Series
from walstream.service.http.table import Cell, shown
from walstream.status.model import SlotStatus, SourceStatus
from walstream.telemetry.counts import ProcessCounts


def _asset(name: str) -> str:
    return (resources.files(__package__) / "assets" / name).read_text("utf-8")


_STYLE: Final = _asset("page.css")
_SCRIPT: Final = _asset("page.js")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


POLICY: Final = (
    f"default-src 'none'; style-src {_hash(_STYLE)}; script-src {_hash(_SCRIPT)};"
    " connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'"
)
_LAG: Final = chart.Axis(duration, chart.round_up_duration)
_RATE: Final = chart.Axis(rate, chart.round_up, "/s")
_STATES: Final = {  # look, and a sign beside the colour
    "streaming": ("good", "●"),
    "polling": ("good", "●"),
    "delivering": ("good", "●"),
    "backfilling": ("calm", "◐"),
    "starting": ("calm", "◌"),
    "new": ("calm", "◌"),
    "lent": ("warn", "◌"),
    "stopped": ("warn", "■"),
}


@dataclass(frozen=True, slots=True)
class History:
    """The samples and events before the moment that a page shows."""

    series: Series
    events: tuple[Event, ...] = ()
    span: ChartSpan = ChartSpan.MINUTES


def render(truth: Truth, config: Config, history: History) -> str:
    """Return the whole document."""
    title, verdict, look = _verdict(truth)
    status = truth.status
    at, started = status.at, status.started_at or status.at
    since = f"{__version__} · up {duration((at - started).total_seconds())}"
    states = {one.name: _state(one) for one in status.sources}
    overview = tables.overview(status.sources, states)
    cards = "".join(
        _Card(one, truth, config, history).render() for one in status.sources
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<link rel="icon" href="data:,">
<noscript><meta http-equiv="refresh" content="5"></noscript>
<style>{_STYLE}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the sources</a>
<header>
<h1>walstream</h1>
<span class="soft" id="since">{escape(since)} · {moment(at)}</span>
{_spans(history.span)}
</header>
<div class="bar">
<p id="verdict" class="verdict {look}" role="status" aria-live="polite">{verdict}</p>
</div>
<main id="main">
{_supervisor(truth)}{overview}{cards}{tables.events(history.events)}
</main>
<footer><nav aria-label="For programs">
<a href="/status">/status</a><a href="/stats">/stats</a><a href="/metrics">/metrics</a>
<a href="/health">/health</a><a href="/ready">/ready</a></nav></footer>
<script>{_SCRIPT}</script>
</body>
</html>
"""


def _spans(current: ChartSpan) -> str:
    """Write the links that choose what the charts span."""
    marks = {current: ' aria-current="true"'}
    links = "".join(
        f'<a href="?span={span.value}"{marks.get(span, "")}>{text}</a>'
        for span, text in ((ChartSpan.MINUTES, "5 min"), (ChartSpan.HOUR, "1 h"))
    )
    return f'<nav class="spans" aria-label="Charts show">{links}</nav>'


def _verdict(truth: Truth) -> tuple[str, str, str]:
    """Return the state of all in a line: for the title, for the page, and its look."""
    red = {source.name for source in truth.status.sources if source.exit_code}
    if truth.hangs:
        return "✗ walstream hangs", escape(f"✗ {truth.hangs}"), "bad"
    if red:
        names = ", ".join(sorted(red))
        text = f"✗ In error: {plural(len(red), 'source')}: {names}"
        return f"✗ {names} · walstream", escape(text), "bad"
    if unready := truth.unready:
        return "◌ walstream", escape(f"◌ Not ready: {'; '.join(unready)}"), "calm"
    count = len(truth.status.sources)
    return "● walstream", f"● Healthy: {plural(count, 'source')}", "good"


def _supervisor(truth: Truth) -> str:
    if not truth.snapshot.stopping:
        return ""
    return (
        '<p class="verdict warn" data-k="stopping">■ walstream is shutting down:'
        " it delivers what it has read</p>"
    )


def _state(source: SourceStatus) -> Cell:
    """Return a state's sign, word and look."""
    look, sign = _STATES.get(source.state, ("bad", "✗"))
    if source.exit_code:
        look, sign = "bad", "✗"
    return Cell(f"{sign} {source.state}", look=look)


class _Figure(NamedTuple):
    key: str
    label: str
    value: str
    note: str = ""
    bar: str = ""


@dataclass(frozen=True, slots=True)
class _Card:
    """One source."""

    source: SourceStatus
    truth: Truth
    config: Config
    history: History

    @property
    def _key(self) -> str:
        return f"source/{self.source.name}"

    def render(self) -> str:
        source, at = self.source, self.truth.status.at
        name, key = escape(source.name), escape(self._key)
        state = _state(source)
        counted = self.truth.snapshot.counted.get(source.name, ProcessCounts())
        series, config = self.history.series, self.config
        rates = series.table_rates(source.name)
        counts = counted.metrics.tables
        charts = self._charts()
        drawn = f'<div class="charts">{charts}</div>' if charts else ""
        return f"""<section class="card" aria-labelledby="source/{name}">
<div class="head"><h2 id="source/{name}">{name}</h2>
<span data-k="{key}/state">{shown(state)}</span>
<span class="soft">{escape(source.kind)} source{self._publications()}</span></div>
<div data-k="{key}/problems">{repair.problems(source)}</div>
<div data-k="{key}/repair">{repair.repair(source)}</div>
<div data-k="{key}/error">{repair.last_error(source, at)}</div>
<dl class="figures">{self._figures()}</dl>
{tables.backfill(source, self._key)}{drawn}
{tables.sinks(source, self._key, series)}
{tables.captured(source, self._key, counts, rates, config)}
{tables.polled(source, self._key)}
<div data-k="{key}/limits">{repair.limits(source)}</div>
</section>
"""

    def _publications(self) -> str:
        names = self.source.publications
        if not names:
            return ""
        return escape(f" · publication{'s' * (len(names) > 1)} {', '.join(names)}")

    def _figures(self) -> str:
        key = escape(self._key)
        return "".join(
            f"<div><dt>{one.label}</dt>"
            f'<dd data-k="{key}/{one.key}">{escape(one.value)}{one.bar}'
            f"{f'<small>{escape(one.note)}</small>' if one.note else ''}</dd></div>"
            for one in self._known_figures()
        )

    def _known_figures(self) -> Iterator[_Figure]:
        """Yield those that a source of its kind has, and that say something."""
        source = self.source
        unit = "rows" if source.kind == "sql" else "ops"
        failed = source.state == "failed"
        if not failed:
            if source.kind == "kafka":
                lag = number(source.lag_records)
                yield _Figure("lag", "Lag", lag, "records upstream")
            elif source.kind == "postgres":
                yield _Figure("lag_s", "Lag (time)", duration(source.lag_s))
                wal = size(source.lag_bytes)
                yield _Figure("lag_bytes", "Lag (WAL)", wal)
            yield _Figure("read", "Read", rate(source.ops_per_s), f"{unit}/s")
            sent = rate(source.delivered_per_s)
            yield _Figure("sent", "Delivered", sent, f"{unit}/s")
        if source.delivered or not failed:
            total = number(source.delivered)
            yield _Figure("all", "Total", total, f"{unit} delivered")
        if source.slot is not None:
            yield self._wal(source.slot)
        if source.resume:
            yield _Figure("resume", "Position", source.resume, "LSN")

    def _wal(self, slot: SlotStatus) -> _Figure:
        """Return the WAL that the slot holds, against its alarm."""
        source = self.config.sources[self.source.name]
        held, note, bar = size(slot.retained_wal), "", ""
        if isinstance(source, PostgresSource):
            alarm = source.alarm_retained_wal
            note = f"of {size(alarm)} (alarm), "
            bar = (
                f'<meter min="0" max="{alarm}" high="{alarm // 2}" optimum="0"'
                f' value="{min(slot.retained_wal, alarm)}"'
                f' aria-label="WAL held, of its alarm">{held}</meter>'
            )
        note += f"slot {slot.name}: {slot.wal_status or 'no WAL status'}"
        if slot.safe_wal_size is not None:
            note += f", {size(max(slot.safe_wal_size, 0))} until it is lost"
        return _Figure("wal", "WAL held", held, note, bar)

    def _charts(self) -> str:
        """Draw them; "" where nothing was known in all the time."""
        source, span = self.source, self.history.span
        seen = self.history.series.of(span).get(source.name, ())
        rates = [(one.at, one.ops_per_s) for one in seen]
        lags = [(one.at, one.lag_s) for one in seen]
        drawn: list[tuple[str, str]] = []
        if source.kind == "postgres" and self._worth(lags):
            drawn.append(("lag", chart.render("Lag", _LAG, lags, span)))
        if self._worth(rates):
            drawn.append(("rate", chart.render("Read", _RATE, rates, span)))
        key = escape(self._key)
        return "".join(
            f'<figure data-k="{key}/chart/{part}">{svg}</figure>' for part, svg in drawn
        )

    def _worth(self, points: chart.Points) -> bool:
        """Return whether a chart shows anything."""
        known = any(value is not None for _, value in points)
        return known or not (self.source.exit_code or self.source.state == "failed")
