"""`walstream positions`: shows, audits, rewinds and resets the sources' positions."""

import contextlib
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from walstream.admin.reset import reset as reset_source
from walstream.admin.reset_sql import reset as reset_polled
from walstream.admin.rewind import Rewind, To
from walstream.admin.rewind import rewind as rewind_source
from walstream.admin.rewind_sql import TableRewind
from walstream.admin.rewind_sql import rewind as rewind_table
from walstream.cli import (
    completion_servers,
    moment,
    positions_audit,
    positions_kafka,
    positions_postgres,
    positions_sql,
)
from walstream.cli.config_file import load
from walstream.cli.options import (
    AdoptSlot,
    AsJson,
    ConfigFile,
    PrintSchema,
    SourceArgument,
    SourceOption,
    Yes,
    source_demanded,
    source_named,
)
from walstream.cli.output import (
    console,
    echo,
    print_findings,
    print_json,
    print_schema,
    print_wrapped,
    size,
)
from walstream.cli.verb_command import VerbCommand, VerbGroup
from walstream.config import Config, SqlSource
from walstream.errors import ConfigError
from walstream.lsn import parse, show
from walstream.status.positions import (
    Standing,
    Standings,
    StartOutcome,
    audit,
    look,
)
from walstream.status.positions.audit_model import Audit
from walstream.status.positions.model import ChainedStanding, PolledStanding
from walstream.telemetry import logs
from walstream.telemetry.terminal import escape

app = typer.Typer(
    cls=VerbGroup,
    help="Show, audit, rewind or reset the sources' positions.",
    no_args_is_help=True,
)

_STYLES = {StartOutcome.STOP: ("✗", "bold red"), StartOutcome.WAIT: ("!", "yellow")}
_FINE = ("✓", "green")

Shown = Standing | PolledStanding | ChainedStanding


@app.callback()
def _positions() -> None:
    """Show, audit, rewind or reset the sources' positions."""


@app.command("show", cls=VerbCommand)
def show_positions(
    source: SourceArgument = "",
    file: ConfigFile = None,
    *,
    named: SourceOption = "",
    as_json: AsJson = False,
    schema: PrintSchema = False,
) -> None:
    """Compare the positions in the state, the slot, the server and the topics.

    Also shows what walstream run would do, and how far back a rewind can go. A sql
    source shows the positions of its tables and their keys; a kafka source shows the
    offsets of its group.

    Example: walstream positions show app
    """
    if schema:
        print_schema(Standings)
        return
    config = load(file)
    logs.configure(config.log_level, config.secrets.scrub)
    found = look(config, source_named(source, named))
    if as_json:
        print_json(found)
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
            positions_postgres.print_standing(out, standing, config)
        else:
            out.print(
                positions_sql.standing_table(standing)
                if isinstance(standing, PolledStanding)
                else positions_kafka.standing_table(standing)
            )
            print_findings(out, standing.notes, config.command)


@app.command("audit", cls=VerbCommand)
def audit_positions(
    source: SourceArgument = "",
    file: ConfigFile = None,
    *,
    named: SourceOption = "",
    as_json: AsJson = False,
    schema: PrintSchema = False,
) -> None:
    """Compare what Kafka has in each partition with state folder, slot and server.

    Says what is left out at the next start, comes again, is missing, or is foreign: of
    another history, or not walstream's. Ends with 3 if something is missing or foreign.

    Example: walstream positions audit app
    """
    if schema:
        print_schema(Audit)
        return
    config = load(file)
    logs.configure(config.log_level, config.secrets.scrub)
    found = audit(config, source_named(source, named))
    if as_json:
        print_json(found)
    else:
        positions_audit.print_audit(console(), found, config)
    raise typer.Exit(found.exit_code)


def _print_verdict(out: Console, standing: Shown, config: Config) -> None:
    sign, style = _STYLES.get(standing.verdict.outcome, _FINE)
    head = Text(f"source {standing.source}: ", style="bold")
    out.print(head + Text(f"{sign} {escape(standing.verdict.text)}", style=style))
    if standing.verdict.problem is not None:
        print_findings(out, [standing.verdict.problem], config.command)


@app.command(cls=VerbCommand)
def rewind(  # noqa: PLR0913 - options
    source: SourceArgument = "",
    *,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="LSN|TIME|KEY",
            help="Where to begin again: 0/16B3748, 2026-11-21T12:00:00+01,"
            ' "2 hours ago", -2h, or 1000.',
        ),
    ],
    table: Annotated[
        str,
        typer.Option(
            "--table",
            metavar="TABLE",
            help="The table of a sql source.",
            autocompletion=completion_servers.tables,
        ),
    ] = "",
    file: ConfigFile = None,
    named: SourceOption = "",
    yes: Yes = False,
) -> None:
    """Send changes again: set a source's position back to an LSN, a time or a key.

    A rewind can go back as far as the slot keeps WAL: see walstream positions show. A
    time is the commit time of the first transaction that is sent again. Consumers get
    the same changes under the same (lsn, seq_id). In a table of a sql source, all rows
    above KEY are sent again.

    Example: walstream positions rewind app --to 0/16B3748

    Example: walstream positions rewind app --to "2 hours ago"

    Example: walstream positions rewind legacy --table processes --to 1000
    """
    config = load(file)
    logs.configure(config.log_level, config.secrets.scrub)
    source = source_demanded(config, source, named)
    positions_kafka.refuse_to_move(config, source)
    if isinstance(config.source(source), SqlSource):
        echo(_rewind_table(config, source, table, to, yes=yes))
        return
    if table:
        raise ConfigError(
            f"--table: {source!r} is not a sql source: all its tables go back together"
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
        return moment.parse(to)
    except ValueError:
        raise ConfigError(
            f"--to: {to!r} is neither an LSN, as 0/16B3748, nor a time, as"
            f" {moment.FORMS}",
            hint="walstream positions show says which can be reached",
        ) from None


def _rewind_table(
    config: Config, source: str, table: str, to: str, *, yes: bool
) -> str:
    try:
        key = int(to)
    except ValueError:
        raise ConfigError(
            f"--to: {to!r} is not a key, which is a whole number",
            hint="walstream positions show says where the tables are",
        ) from None

    def consent(planned: TableRewind) -> bool:
        return _agreed(
            f"Table {planned.table!r} of source {planned.source!r} goes back from key"
            f" {planned.key} to {planned.to}: its rows above {planned.to} are sent"
            " again, as they are now. Readers that drop duplicates by their hash do not"
            " see unchanged rows.",
            yes=yes,
        )

    return rewind_table(config, source, table, key, consent)


@app.command(cls=VerbCommand)
def reset(
    source: SourceArgument = "",
    file: ConfigFile = None,
    *,
    named: SourceOption = "",
    adopt_slot: AdoptSlot = False,
    yes: Yes = False,
) -> None:
    """Forget a source's position and drop its slot: the next run starts from scratch.

    A slot that the state does not know stays, unless --adopt-slot says that it is the
    source's. A sql source has none: its tables begin again where their `start` says.

    Example: walstream positions reset app
    """
    config = load(file)
    logs.configure(config.log_level, config.secrets.scrub)
    source = source_demanded(config, source, named)
    positions_kafka.refuse_to_move(config, source)

    def consent(what: str) -> bool:
        return _agreed(what, yes=yes)

    if isinstance(config.source(source), SqlSource):
        echo(reset_polled(config, source, consent))
    else:
        echo(reset_source(config, source, consent, adopt=adopt_slot))


def _agreed(what: str, *, yes: bool) -> bool:
    """Print what will be lost, and ask at a terminal."""
    print_wrapped(what)
    if yes:
        return True
    if not sys.stdin.isatty():
        raise ConfigError("only a terminal can confirm", hint="add --yes")
    return typer.confirm("Continue?")
