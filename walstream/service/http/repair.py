"""Problems of a source, and their repair to copy. Pure."""

from collections.abc import Iterator
from datetime import UTC, datetime
from html import escape
from typing import Final

from walstream.service.http.figures import duration
from walstream.status.model import LastError, SourceStatus

_LIMITS: Final = 10  # that the page names


def problems(source: SourceStatus) -> str:
    """Show why a source is red, and what its configuration risks."""
    texts = source.problems
    if source.exit_code and not texts:
        texts = [f"it is {source.state}"]
    lines = [f'<li class="bad">✗ {escape(text)}</li>' for text in texts]
    risks = source.risks + [risk for sink in source.sinks for risk in sink.risks]
    lines += [f'<li class="warn">! {escape(risk)}</li>' for risk in risks]
    return f'<ul class="problems">{"".join(lines)}</ul>' if lines else ""


def repair(source: SourceStatus) -> str:
    """Show what repairs the error that is among a source's problems."""
    error = source.last_error
    parts: list[str] = []
    if error is not None and is_current(source):
        parts += _steps(error)
    for name, table in source.tables.items():
        if table.error and (table.hint or table.repair):
            text = f"{name}: {table.hint or table.error}"
            parts.append(f"<p>{escape(text)}</p>{copied(table.repair)}")
    return f"<h3>How to repair it</h3>{''.join(parts)}" if parts else ""


def _steps(error: LastError) -> Iterator[str]:
    if error.hint:
        yield f"<p>{escape(error.hint)}</p>"
    yield copied(error.sql, "SQL")
    yield copied(error.repair, "Shell")
    if error.then and error.then != error.hint:
        yield f"<p>Then: {escape(error.then)}</p>"


def copied(text: str, kind: str = "") -> str:
    """Write statements or a command; one click selects them. "" for ""."""
    if not text:
        return ""
    label = f'<span class="soft">{kind}</span>' if kind else ""
    return f'<div class="copy">{label}<pre><code>{escape(text)}</code></pre></div>'


def is_current(source: SourceStatus) -> bool:
    """Return whether a source's last error is why it is red."""
    error = source.last_error
    return bool(source.exit_code and error and error.error in source.problems)


def last_error(source: SourceStatus, at: datetime) -> str:
    """Show when the last error came, and its text where it is over."""
    error = source.last_error
    if error is None:
        return ""
    ago = duration((at - error.at.astimezone(UTC)).total_seconds())
    if is_current(source):
        return f'<p class="soft">This error was seen {ago} ago.</p>'
    over = "" if source.exit_code else ", now over"
    return (
        f'<h3>Last error</h3><p><span class="soft">{ago} ago{over}:</span>'
        f" {escape(error.error)}</p>"
    )


def limits(source: SourceStatus) -> str:
    """Show tables and patterns that are not captured whole, and the repair."""
    named = list(source.limits.items())[:_LIMITS]
    lines = [
        f'<li class="warn">! <b>{escape(name)}</b>: {escape(limit.reason)}'
        f"{copied(limit.sql, 'SQL')}</li>"
        for name, limit in named
    ]
    if not lines:
        return ""
    more = len(source.limits) - len(named) + source.more_limits
    said = f'<p class="soft">and {more:,} more: walstream check</p>' if more else ""
    return (
        f'<h3>Not captured completely</h3><ul class="problems">{"".join(lines)}</ul>'
        f"{said}"
    )
