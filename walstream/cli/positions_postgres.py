"""Layout of a postgres source's positions for people."""

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

from walstream.cli.output import count, print_findings, size, table
from walstream.config import Config
from walstream.finding import Finding
from walstream.formats import timestamp
from walstream.lsn import show
from walstream.postgres.slot_inventory import SlotFacts
from walstream.sources.postgres.stored_state import ReplayWindow
from walstream.status.positions import Standing
from walstream.status.positions.model import StateFacts
from walstream.telemetry.terminal import escape


def print_standing(out: Console, standing: Standing, config: Config) -> None:
    """Print the four sides, how far a rewind can go, and what is wrong."""
    out.print(_sides(standing))
    if (window := standing.window) is not None:
        out.print(reach(window))
        if window.size_bytes and window.first_time and window.last_time:
            first, last = map(timestamp.of, (window.first_time, window.last_time))
            out.print(
                f"or commit times from {timestamp.rfc3339(first)} to"
                f" {timestamp.rfc3339(last)}"
            )
    findings: list[Finding] = [*standing.topics.problems, *standing.notes]
    print_findings(out, findings, config.command)


def reach(window: ReplayWindow) -> str:
    """Return how far back a rewind can go."""
    if not window.size_bytes:
        return (
            'nothing can be rewound: set retain, e.g. "1GiB", to keep that much WAL'
            " behind the position from then on"
        )
    reach = f"{show(window.oldest)} to {show(window.newest)}"
    return f"a rewind can reach {reach}: {size(window.size_bytes)}"


def _sides(standing: Standing) -> Table:
    """Put the same facts of each side on one line."""
    state, slot, server = standing.state, standing.slot, standing.server
    last = standing.topics.last
    made = table("", "state folder", "slot", "server", "topics")
    for column in made.columns:
        column.overflow = "fold"  # no digit may be missing
    for name, *cells in (
        (
            "position",
            _at("resume", state.resume if state else None),
            _at("confirmed", slot.confirmed_lsn if slot else None),
            _at("flushed", server.flush_lsn if server else None),
            f"{show(last.lsn)}, {last.seq_id}\nlast change" if last else "",
        ),
        (
            "back to",
            _at("position before", state.previous_resume if state else None),
            _at("restart_lsn", slot.restart_lsn if slot else None),
            _at("oldest WAL", server.kept_from if server else None),
        ),
        *_belongings(standing),
        ("is", *_states(standing)),
    ):
        if any(cells):
            made.add_row(name, *cells)
    return made


def _at(what: str, lsn: int | None) -> str:
    return "" if lsn is None else f"{show(lsn)}\n{what}"


def _belongings(standing: Standing) -> Iterator[tuple[str, str, str, str]]:
    """Yield what the position belongs to."""
    state, slot, server = standing.state, standing.slot, standing.server
    for name, field in (("system", "system_identifier"), ("timeline", "timeline")):
        here, there = getattr(state, field, None), getattr(server, field, None)
        yield name, _text(here), "", _text(there)
    yield (
        "database",
        _text(state.database if state else None),
        _text(slot.database if slot else None),
        _text(server.database if server else None),
    )
    yield "slot", _text(state.slot if state else None), slot.name if slot else "", ""


def _text(value: object) -> str:
    return "" if value is None else escape(str(value))


def _states(standing: Standing) -> tuple[str, str, str, str]:
    """Return how each side is."""
    server, ends = standing.server, standing.topics.topics
    topics = count(len(ends), "topic")
    if missing := sum(1 for end in ends if end.problem):
        topics += f"\n{missing} not read"
    if standing.topics.problems:
        topics = "not known"
    return (
        _folder(standing.state),
        _slot(standing.slot),
        f"PostgreSQL {server.version}" if server else "not known",
        topics,
    )


def _folder(state: StateFacts | None) -> str:
    if state is None:
        return "not readable"
    if state.resume is not None:
        return f"epoch {state.epoch}\n{count(state.key_tables, 'table')}"
    if state.intent is None:
        return "no position"
    return f"begun\n{_at('slot made', state.intent.consistent_point) or 'no slot yet'}"


def _slot(slot: SlotFacts | None) -> str:
    if slot is None:
        return "not there"
    reader = f"read by {slot.reader.pid}" if slot.reader else "not read"
    state = slot.invalidation or slot.wal_status or "-"
    return f"{state}\n{size(slot.held_bytes)} held\n{reader}"
