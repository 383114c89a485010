"""`walstream positions`: what is kept of each source's progress."""

import contextlib
import sys
from collections.abc import Iterator
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from walstream.admin.reset import reset as reset_source
from walstream.admin.reset_sql import reset as reset_polled
from walstream.admin.rewind import Rewind, To
from walstream.admin.rewind import rewind as rewind_source
from walstream.admin.rewind_sql import TableRewind
from walstream.admin.rewind_sql import rewind as rewind_table
from walstream.cli import positions_kafka, positions_sql
from walstream.cli.config_file import load
from walstream.cli.options import AsJson, ConfigFile, PrintSchema
from walstream.cli.output import (
    console,
    echo,
    print_findings,
    print_json,
    print_schema,
    print_wrapped,
    size,
    table,
)
from walstream.config import Config, SqlSource
from walstream.errors import ConfigError
from walstream.finding import Finding
from walstream.formats import timestamp
from walstream.lsn import parse, show
from walstream.postgres.slot_inventory import SlotFacts
from walstream.sources.postgres.stored_state import ReplayWindow
from walstream.status.positions import SCHEMA, Standing, StartOutcome, look
from walstream.status.positions.model import ChainedStanding, PolledStanding, StateFacts
from walstream.telemetry import logs
from walstream.telemetry.terminal import escape

app = typer.Typer(help="What is kept of each source's progress.", no_args_is_help=True)

_STYLES = {StartOutcome.STOP: ("✗", "bold red"), StartOutcome.WAIT: ("!", "yellow")}
_FINE = ("✓", "green")

Shown = Standing | PolledStanding | ChainedStanding
SourceName = Annotated[str, typer.Argument(help="The source's name.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


@app.callback()
def _positions() -> None:
    """Look at, set back, or forget what is kept of each source's progress."""


@app.command("show")
def show_positions(
    source: Annotated[
        str, typer.Argument(help="Only this source.", show_default=False)
    ] = "",
    file: ConfigFile = None,
    *,
    as_json: AsJson = False,
    schema: PrintSchema = False,
) -> None:
    """Show what the state folder, the slot, the server and the topics say.

    Side by side, with what walstream run would do, and how far back a rewind can reach.
    Of a sql source: the positions of its tables, and the keys that are there. Of a
    kafka source: its group's offsets.

    Example: walstream positions show app
    """
    if schema:
        print_schema(SCHEMA)
        return
    config = load(file)
    logs.configure(config.log_level, config.secrets.scrub)
    found = look(config, source)
    if as_json:
        print_json(SCHEMA, found)
        return
    out = console()
    standings: list[Shown] = [*found.sources, *found.polled, *found.chained]
    if not standings:
        out.print("no source is configured")
    for index, standing in enumerate(standings):
        if index:
            out.print()
        _print_verdict(out, standing, config)
        if isinstance(standing, Standing):
            _print(out, standing, config)
        else:
            out.print(
                positions_sql.standing_table(standing)
                if isinstance(standing, PolledStanding)
                else positions_kafka.standing_table(standing)
            )
            print_findings(out, standing.notes, config.command)


def _print_verdict(out: Console, standing: Shown, config: Config) -> None:
    sign, style = _STYLES.get(standing.verdict.outcome, _FINE)
    head = Text(f"source {standing.source}: ", style="bold")
    out.print(head + Text(f"{sign} {escape(standing.verdict.text)}", style=style))
    if standing.verdict.problem is not None:
        print_findings(out, [standing.verdict.problem], config.command)


def _print(out: Console, standing: Standing, config: Config) -> None:
    out.print(_sides(standing))
    if (window := standing.window) is not None:
        out.print(_reach(window))
        if window.size_bytes and window.first_time and window.last_time:
            first, last = map(timestamp.of, (window.first_time, window.last_time))
            out.print(
                f"or commit times from {timestamp.rfc3339(first)} to"
                f" {timestamp.rfc3339(last)}"
            )
    findings: list[Finding] = [*standing.topics.problems, *standing.notes]
    print_findings(out, findings, config.command)


def _reach(window: ReplayWindow) -> str:
    if not window.size_bytes:
        return (
            'nothing can be rewound: write retain = "1GiB", or another size, and so'
            " much WAL is kept behind the position from then on"
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
            "earlier",
            _at("previous", state.previous_resume if state else None),
            _at("restart", slot.restart_lsn if slot else None),
            _at("kept from", server.kept_from if server else None),
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
    topics = f"{len(ends)} topics"
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
        return f"epoch {state.epoch}\n{state.key_tables} tables"
    if state.intent is None:
        return "no position"
    return f"begun\n{_at('slot made', state.intent.consistent_point) or 'no slot yet'}"


def _slot(slot: SlotFacts | None) -> str:
    if slot is None:
        return "not there"
    reader = f"read by {slot.reader.pid}" if slot.reader else "not read"
    state = slot.invalidation or slot.wal_status or "-"
    return f"{state}\n{size(slot.held_bytes)} held\n{reader}"


@app.command()
def rewind(
    source: SourceName,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="LSN|TIME|KEY",
            help="Where to begin again: 0/16B3748, 2026-11-21T12:00:00+01, or 1000.",
        ),
    ],
    table: Annotated[
        str,
        typer.Option("--table", metavar="TABLE", help="Which one of a sql source."),
    ] = "",
    file: ConfigFile = None,
    *,
    yes: Yes = False,
) -> None:
    """Set a source's position back: what came after LSN is sent to Kafka again.

    As far as its slot still has it: walstream positions show says how far. TIME (UTC
    without an offset) is that of commits: the first that is not before it begins.
    Readers get the same changes under the same (lsn, seq_id). Of a sql source, rows of
    a table above KEY are sent again, each with the same hash while it is the same.

    Example: walstream positions rewind app --to 0/16B3748

    Example: walstream positions rewind app --to "2026-11-21 12:00:00+01"

    Example: walstream positions rewind legacy --table processes --to 1000
    """
    config = load(file)
    logs.configure(config.log_level, config.secrets.scrub)
    positions_kafka.refuse_to_move(config, source)
    if isinstance(config.source(source), SqlSource):
        echo(_rewind_table(config, source, table, to, yes=yes))
        return
    if table:
        raise ConfigError(
            f"--table: {source!r} is no sql source: all its tables go back together"
        )
    place = _place(to)

    def consent(planned: Rewind) -> bool:
        return _agreed(
            f"Source {planned.source!r} goes back from {show(planned.resume)} to"
            f" {show(planned.to)}: {size(planned.resume - planned.to)} of WAL are read"
            " again, and readers get the same changes again, under the same (lsn,"
            " seq_id).",
            yes=yes,
        )

    echo(rewind_source(config, source, place, consent))


def _place(to: str) -> To:
    """Read an LSN or a time."""
    with contextlib.suppress(ValueError):
        return parse(to)
    try:
        return timestamp.parse(to)
    except ValueError:
        raise ConfigError(
            f"--to: {to!r} is neither an LSN, as 0/16B3748, nor a time, as"
            " 2026-11-21T12:00:00Z",
            hint="walstream positions show says which can be reached",
        ) from None


def _rewind_table(
    config: Config, source: str, table: str, to: str, *, yes: bool
) -> str:
    try:
        key = int(to)
    except ValueError:
        raise ConfigError(
            f"--to: {to!r} is no key, which is a whole number",
            hint="walstream positions show says where the tables are",
        ) from None

    def consent(planned: TableRewind) -> bool:
        return _agreed(
            f"Table {planned.table!r} of source {planned.source!r} goes back from key"
            f" {planned.key} to {planned.to}: its rows above {planned.to} are sent"
            " again, as they are now. Readers that drop what has the same hash do not"
            " see those that did not change.",
            yes=yes,
        )

    return rewind_table(config, source, table, key, consent)


@app.command()
def reset(
    source: SourceName,
    file: ConfigFile = None,
    *,
    yes: Yes = False,
) -> None:
    """Forget a source's position and drop its slot: the next run begins anew.

    A sql source has no slot: its tables begin where their `start` says.

    Example: walstream positions reset app
    """
    config = load(file)
    logs.configure(config.log_level, config.secrets.scrub)
    positions_kafka.refuse_to_move(config, source)
    is_polled = isinstance(config.source(source), SqlSource)
    forget = reset_polled if is_polled else reset_source
    echo(forget(config, source, lambda what: _agreed(what, yes=yes)))


def _agreed(what: str, *, yes: bool) -> bool:
    """Return what will be, and ask where somebody is there to answer."""
    print_wrapped(what)
    if yes:
        return True
    if not sys.stdin.isatty():
        raise ConfigError("nobody is here to agree", hint="add --yes")
    return typer.confirm("Go on?")
