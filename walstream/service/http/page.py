"""The page: one document, made anew for each request, which needs no script.

What changes stands in elements with `data-k`, by which the script finds them again. No
figure is ever computed in the browser.
"""

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from importlib import resources
from typing import Final

from walstream import __version__
from walstream.service.http import chart, tables
from walstream.service.http.board import Sample, Truth
from walstream.service.http.figures import duration, moment, number, plural, rate, size
from walstream.status.model import LastError, SourceStatus

Samples = Mapping[str, Sequence[Sample]]


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
_STATES: Final = {  # how it looks, and a sign for who sees no colours
    "streaming": ("good", "●"),
    "polling": ("good", "●"),
    "delivering": ("good", "●"),
    "backfilling": ("calm", "◐"),
    "starting": ("calm", "◌"),
    "new": ("calm", "◌"),
    "lent": ("warn", "◌"),
    "stopped": ("warn", "■"),
}


def render(truth: Truth, samples: Samples) -> str:
    """Write the whole document."""
    title, verdict, look = _verdict(truth)
    status = truth.status
    at, started = status.at, status.started_at or status.at
    since = f"{__version__} · runs {duration((at - started).total_seconds())}"
    sources = "".join(_source(one, at, samples) for one in status.sources)
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
<a class="skip" href="#main">To the figures</a>
<header>
<h1>walstream</h1>
<span class="soft" id="since">{escape(since)} · {moment(at)}</span>
</header>
<div class="bar">
<p id="verdict" class="verdict {look}" role="status" aria-live="polite">{verdict}</p>
</div>
<main id="main">
{_supervisor(truth)}{sources}
</main>
<footer><nav aria-label="The same for programs">
<a href="/status">/status</a><a href="/stats">/stats</a><a href="/metrics">/metrics</a>
<a href="/health">/health</a><a href="/ready">/ready</a></nav></footer>
<script>{_SCRIPT}</script>
</body>
</html>
"""


def _verdict(truth: Truth) -> tuple[str, str, str]:
    """Return in a line how all is: for the title, for the page, and its look."""
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
    return "● walstream", f"● All is well: {plural(count, 'source')}", "good"


def _supervisor(truth: Truth) -> str:
    if not truth.snapshot.stopping:
        return ""
    return '<p class="verdict warn" data-k="stopping">■ walstream drains, and ends</p>'


def state(name: str, *, red: bool = False) -> str:
    """Show a state by word, sign and colour."""
    look, sign = _STATES.get(name, ("bad", "✗"))
    if red:
        look, sign = "bad", "✗"
    return f'<span class="state {look}">{sign} {escape(name)}</span>'


def _source(source: SourceStatus, at: datetime, samples: Samples) -> str:
    name = escape(source.name)
    key = f"source/{name}"
    return f"""<section class="card" aria-labelledby="{key}">
<div class="head"><h2 id="{key}">{name}</h2>
<span data-k="{key}/state">{state(source.state, red=bool(source.exit_code))}</span>
<span class="soft">{escape(source.kind)} source</span></div>
<div data-k="{key}/problems">{_problems(source)}</div>
<dl class="figures">{"".join(_figures(source, key))}</dl>
{tables.backfill(source, key)}
<div class="charts">{_charts(source, key, samples)}</div>
{tables.sinks(source, key)}{tables.polled(source, key)}
<div data-k="{key}/error">{_last_error(source.last_error, source, at)}</div>
</section>
"""


def _problems(source: SourceStatus) -> str:
    texts = source.problems
    if source.exit_code and not texts:
        texts = [f"it is {source.state}"]
    lines = "".join(f'<li class="bad">✗ {escape(text)}</li>' for text in texts)
    risks = source.risks + [risk for sink in source.sinks for risk in sink.risks]
    lines += "".join(f'<li class="warn">! {escape(risk)}</li>' for risk in risks)
    return f'<ul class="problems">{lines}</ul>' if lines else ""


def _figures(source: SourceStatus, key: str) -> Iterator[str]:
    """Show those that a source of its kind has."""
    unit = "rows" if source.kind == "sql" else "ops"
    found: list[tuple[str, str, str, str]] = []
    if source.kind == "kafka":
        lag = number(source.lag_records)
        found.append(("lag", "Waiting upstream", lag, "records"))
    elif source.kind == "postgres":
        found += [
            ("lag_s", "Lag", duration(source.lag_s), ""),
            ("lag_bytes", "Behind", size(source.lag_bytes), "of WAL"),
        ]
    found += [
        ("read", "Read", rate(source.ops_per_s), f"{unit}/s"),
        ("sent", "Delivered", rate(source.delivered_per_s), f"{unit}/s"),
        ("all", "In all", number(source.delivered), f"{unit} delivered"),
    ]
    if (slot := source.slot) is not None:
        left = slot.safe_wal_size
        of = "" if left is None else f", {size(left)} left"
        held = size(slot.retained_wal)
        found.append(("wal", "WAL held", held, f"by slot {slot.name}{of}"))
    if source.resume:
        found.append(("resume", "Position", source.resume, "LSN"))
    for part, label, value, small in found:
        note = f"<small>{escape(small)}</small>" if small else ""
        yield (
            f"<div><dt>{label}</dt>"
            f'<dd data-k="{key}/{part}">{escape(value)}{note}</dd></div>'
        )


def _charts(source: SourceStatus, key: str, samples: Samples) -> str:
    seen = samples.get(source.name, ())
    rates = [(one.at, one.ops_per_s) for one in seen]
    drawn = [("rate", chart.render("Read", "/s", rates, rate))]
    if source.kind == "postgres":
        lags = [(one.at, one.lag_s) for one in seen]
        drawn.insert(0, ("lag", chart.render("Lag", "", lags, duration)))
    return "".join(
        f'<figure data-k="{key}/chart/{part}">{svg}</figure>' for part, svg in drawn
    )


def _last_error(error: LastError | None, source: SourceStatus, at: datetime) -> str:
    if error is None:
        return ""
    ago = duration((at - error.at.astimezone(UTC)).total_seconds())
    said = "" if error.error in source.problems else f" {escape(error.error)}"
    hint = f"<p>{escape(error.hint)}</p>" if error.hint else ""
    repair = f"<p><code>{escape(error.repair)}</code></p>" if error.repair else ""
    over = "" if source.exit_code else ", now over"
    return (
        f'<h3>Last error</h3><p><span class="soft">{ago} ago{over}.</span>{said}</p>'
        f"{hint}{repair}"
    )
