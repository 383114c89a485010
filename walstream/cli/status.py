"""`walstream status`: how every source and sink is, whether one runs or not."""

import contextlib
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Annotated, TypeVar

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from walstream.cli import positions_sql
from walstream.cli.config_file import load
from walstream.cli.options import ConfigFile, PrintSchema
from walstream.cli.output import (
    console,
    duration,
    print_json,
    print_schema,
    rate,
    size,
    table,
)
from walstream.config import Config
from walstream.sources.postgres.backfill.status import BackfillStatus
from walstream.status.lookup.sources import look
from walstream.status.model import SlotStatus, SourceStatus, Status, adapter
from walstream.telemetry.terminal import escape

_UNDER = " " * 6
_Number = TypeVar("_Number", int, float)
_STYLES = {
    "streaming": "green",
    "polling": "green",
    "backfilling": "cyan",
    "failed": "bold red",
    "silent": "bold red",
}
_FIGURES = (
    "lag (time)",
    "lag (WAL)",
    "lag (records)",
    "read/s",
    "sent/s",
    "WAL held",
)


def status(
    file: ConfigFile = None,
    *,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Refresh until Ctrl-C.")
    ] = False,
    interval: Annotated[
        float,
        typer.Option(min=0.2, metavar="SECONDS", help="How often --watch refreshes."),
    ] = 2.0,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print JSON; with --watch one line per refresh."),
    ] = False,
    schema: PrintSchema = False,
) -> None:
    """Show state, lag, rates, held WAL and the last error of every source and sink.

    Polled tables show their position and the keys that are missing below it.

    Example: walstream status --watch
    """
    if schema:
        print_schema(Status)
        return
    config = load(file)
    if not watch:
        found = look(config)
        if as_json:
            print_json(found)
        else:
            _print(console(), found)
        raise typer.Exit(found.exit_code)
    with contextlib.suppress(KeyboardInterrupt):  # how a watch ends
        _watch(config, interval, as_json=as_json)


def _watch(config: Config, interval_s: float, *, as_json: bool) -> None:
    out = console()
    if as_json:
        while True:
            typer.echo(adapter().dump_json(look(config)))
            time.sleep(interval_s)
    if not out.is_terminal:
        while True:
            _print(out, look(config), timed=True)
            out.print()
            time.sleep(interval_s)
    with Live(console=out, screen=False, auto_refresh=False) as live:
        while True:
            live.update(Group(*_shown(look(config), timed=True)), refresh=True)
            time.sleep(interval_s)


def _print(out: Console, found: Status, *, timed: bool = False) -> None:
    for part in _shown(found, timed=timed):
        # a command is never wrapped: it is there to be copied
        out.print(part, soft_wrap=isinstance(part, Text) and bool(part.no_wrap))


def _shown(found: Status, *, timed: bool) -> list[RenderableType]:
    """Lay out all parts; `timed`: with the time of the look."""
    headline = _headline(found)
    if timed:
        headline.append(f"; at {found.at.astimezone():%H:%M:%S}", "dim")
    parts: list[RenderableType] = [headline, _sources(found)]
    if any(source.tables for source in found.sources):
        parts.append(positions_sql.status_table(found.sources, found.at))
    parts.append(_sinks(found))
    for source in found.sources:
        parts += map(_whole, _remarks(source, found.at))
    return parts


def _whole(remark: Text) -> Text:
    """Keep it to its line; a repair of several has them under its own beginning."""
    lines = remark.plain.split("\n") if remark.no_wrap else [remark.plain]
    text = f"\n{_UNDER}".join(map(escape, lines))
    return Text(text, remark.style, no_wrap=remark.no_wrap)


def _headline(found: Status) -> Text:
    if found.pid is None or found.started_at is None:
        return Text("not running on this state folder", style="yellow")
    since = duration((found.at - found.started_at).total_seconds())
    return Text(f"running, pid {found.pid}, up {since}")


def _sources(found: Status) -> RenderableType:
    rows = [_figures(source) for source in found.sources]
    names = [name for name in _FIGURES if any(name in row for row in rows)]
    made = table("source", "state", *names, "position", right=names)
    for source, row in zip(found.sources, rows, strict=True):
        style = _STYLES.get(source.state, "yellow")
        made.add_row(
            source.name,
            Text(source.state, style="bold red" if source.problems else style),
            *(row.get(name, "-") for name in names),
            _position(source),
        )
    return made


def _figures(source: SourceStatus) -> dict[str, str]:
    """Write those that its kind has."""
    rates = {
        "read/s": rate(source.ops_per_s),
        "sent/s": rate(source.delivered_per_s),
    }
    if source.tables:
        return rates
    if source.kind == "kafka":
        waiting = source.lag_records
        lag = "-" if waiting is None else f"{waiting:,}"
        return {**rates, "lag (records)": lag}
    return {
        **rates,
        "lag (time)": _known(source.lag_s, duration),
        "lag (WAL)": _known(source.lag_bytes, size),
        "WAL held": _known(source.slot.retained_wal if source.slot else None, size),
    }


def _known(value: _Number | None, written: Callable[[_Number], str]) -> str:
    return "-" if value is None else written(value)


def _position(source: SourceStatus) -> str:
    if count := len(source.tables):
        return f"of {count} table{'s' * (count > 1)}"
    return source.resume or "-"


def _sinks(found: Status) -> RenderableType:
    counts = [
        name
        for name in ("skipped", "failed", "parked", "left_out")
        if any(getattr(sink, name) for one in found.sources for sink in one.sinks)
    ]
    heads = [name.replace("_", " ") for name in counts]
    made = table("sink", "of", "kind", "state", "in flight", "dropped", *heads)
    for source in found.sources:
        for sink in source.sinks:
            made.add_row(
                sink.name,
                source.name,
                sink.kind,
                sink.state,
                "-" if sink.in_flight is None else f"{sink.in_flight:,}",
                "-" if sink.dropped is None else f"{sink.dropped:,}",
                *(f"{getattr(sink, name) or 0:,}" for name in counts),
            )
    return made


def _remarks(source: SourceStatus, at: datetime) -> list[Text]:
    name = source.name
    remarks = [Text(f"✗ {name}: {problem}", "red") for problem in source.problems]
    if (last := source.last_error) is not None:
        ago = duration((at - last.at).total_seconds())
        if last.error not in source.problems:
            remarks.append(Text(f"· {name}: last error, {ago} ago: {last.error}"))
        else:
            remarks.append(Text(f"    {ago} ago. {last.hint}", "dim"))
            lines = [f"SQL> {line}" for line in last.sql.splitlines()]
            lines += [f"$ {last.repair}"] if last.repair else []
            if last.then and last.then != last.hint:
                lines.append(f"then: {last.then}")
            remarks += [Text(f"    {line}", "green", no_wrap=True) for line in lines]
    remarks += _stream(source)
    if source.backfill is not None:
        remarks += _backfill(name, source.backfill)
    for table_name, how in source.beside.items():
        if how.state != "done":
            part = f" where {how.where}" if how.where else ""
            line = f"backfill of {table_name}{part}: {how.state}, {how.rows:,} rows"
            style = "yellow" if how.error else "dim"
            said = how.error or how.remark
            why = f": {said}" if said else ""
            remarks.append(Text(f"· {name}: {line}{why}", style))
    for table_name, found in source.tables.items():
        remarks += positions_sql.remarks(f"{name}, table {table_name}", found, at)
    for cause, count in source.poisoned.items():
        what = f"{count:,} record{'s' * (count > 1)} skipped or set aside: {cause}"
        remarks.append(Text(f"· {name}: {what}", "yellow"))
    gave_up = [(name, risk) for risk in source.risks]
    gave_up += [(sink.name, risk) for sink in source.sinks for risk in sink.risks]
    remarks += [Text(f"! {part}: {risk}", "yellow") for part, risk in gave_up]
    return remarks


def _stream(source: SourceStatus) -> Iterator[Text]:
    if source.held_by:
        yield Text(f"· {source.name}: {source.held_by} holds its stream", "yellow")
    slot = source.slot
    if slot is not None and (slot.spill_txns or slot.spilled):
        yield Text(f"· {source.name}: {_spill(slot)}", "dim")


def _spill(slot: SlotStatus) -> str:
    """Return what the server wrote to disk of transactions too large for its memory."""
    count = slot.spill_txns
    said = f"{count:,} large transaction{'' if count == 1 else 's'} spilled to disk"
    now = "this role may not see how much is there now"
    if slot.spilled is not None:
        now = f"{size(slot.spilled)} of it there now"
    return f"{said}, {size(slot.spill_bytes)} in all, {now}"


def _backfill(source: str, found: BackfillStatus) -> list[Text]:
    if found.state == "done":
        return []
    count = len(found.tables)
    left = f"{count or 'no'} table{'' if count == 1 else 's'} left"
    said = [f"backfill {found.state}", left, f"{found.rows:,} rows sent"]
    if found.rows_per_s is not None:
        said.append(f"{found.rows_per_s:,.0f} rows/s")
    if found.share is not None:
        said.append(f"{found.share:.0%}")
    if found.left_s is not None:
        said.append(f"about {duration(found.left_s)} left")
    if found.waits:
        said.append(f"trying again: {found.waits}")
    said += [f"of {table} where {sql}" for table, sql in found.where.items()]
    return [Text(f"· {source}: {', '.join(said)}", "cyan")]
