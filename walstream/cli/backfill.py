"""`walstream backfill`: read tables once more, or views for once."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from walstream.admin import (
    backfill_offline,
    backfill_request,
)
from walstream.cli import completion, completion_servers
from walstream.cli.config_file import load
from walstream.cli.launch import run
from walstream.cli.options import ConfigFile, Verbose
from walstream.cli.output import console
from walstream.config import Config
from walstream.config.run_options import Options
from walstream.sources.postgres.incremental.progress import stored
from walstream.sources.postgres.requested_tables import check_strict, part_of
from walstream.state.control import lent
from walstream.state.lock import holder
from walstream.status.lookup.postgres import kept_of
from walstream.telemetry import logs
from walstream.telemetry.terminal import escape

_LOOK_EVERY_S = 0.5
_FAILED = 5


def backfill(  # noqa: PLR0913 - options
    tables: Annotated[
        list[str],
        typer.Argument(
            metavar="TABLE",
            help="schema.table, or a pattern with * and ?.",
            autocompletion=completion_servers.tables,
        ),
    ],
    file: ConfigFile = None,
    *,
    source: Annotated[
        str,
        typer.Option(
            "--source",
            metavar="NAME",
            help="The source, if there are several.",
            autocompletion=completion.sources,
        ),
    ] = "",
    replace: Annotated[
        bool,
        typer.Option(
            "--replace", help="Consumers empty each table first: repairs deletes, too."
        ),
    ] = False,
    where: Annotated[
        str,
        typer.Option(
            "--where",
            metavar="SQL",
            help="Send only the rows for which this condition is true.",
        ),
    ] = "",
    wait: Annotated[
        bool,
        typer.Option("--wait", help="Return when the running instance is done."),
    ] = False,
    verbose: Verbose = 0,
) -> None:
    """Send all rows of tables again, or a part, in order with the stream.

    A running instance reads the tables beside its stream. Without one, this streams up
    to a snapshot, reads the tables with Spark, and ends.

    Example: walstream backfill public.orders --replace
    Example: walstream backfill public.orders --where "created >= '2026-01-01'"
    """
    config = load(file)
    if verbose:
        config = config.model_copy(update={"log_level": "debug"})
    logs.configure(config.log_level, config.secrets.scrub)
    name, found = backfill_offline.source_of(config, source)
    beside = holder(Path(config.state)) is not None
    where = part_of(where, replace=replace)
    check_strict(config, name, found, beside=beside, replace=replace)
    if beside:
        wish = Wish(name, tables, replace=replace, where=where)
        raise typer.Exit(_beside(config, wish, wait=wait))
    asked = backfill_offline.find(config, name, tables, where)
    _tell_left_out(console(), asked.left_out)
    with lent(config, name):
        folder = Path(config.state) / name
        backfill_offline.note(folder, asked, anew=replace, where=where)
    alone = config.model_copy(update={"sources": {name: found}})
    raise typer.Exit(run(alone, Options(end_backfilled=True)))


@dataclass(frozen=True, slots=True)
class Wish:
    """Tables that are to be read beside a stream."""

    source: str
    tables: list[str]
    replace: bool
    where: str


def _beside(config: Config, wish: Wish, *, wait: bool) -> int:
    """Make the running instance read them; return the exit code."""
    out = console()
    asked = backfill_request.backfill(
        config, wish.source, wish.tables, replace=wish.replace, where=wish.where
    )
    _tell_left_out(out, asked.left_out)
    when = "beside the stream" if asked.running else "with the next walstream run"
    named = ", ".join(map(escape, asked.tables)) or "nothing"
    out.print(f"read {when}: {named}", highlight=False)
    if not asked.running:
        return 0
    if wait:
        return _follow(out, config, wish.source, set(asked.tables))
    out.print(f"  $ {config.command('walstream status --watch')}", style="green")
    return 0


def _tell_left_out(out: Console, left_out: Mapping[str, str]) -> None:
    for table, why in left_out.items():
        out.print(escape(f"left out: {table}: {why}"), style="yellow", highlight=False)


def _follow(out: Console, config: Config, source: str, tables: set[str]) -> int:
    """Wait until every table is done, or does not go on."""
    folder = Path(config.state)
    while tables:
        wished = stored(kept_of(folder / source).beside)
        for table in sorted(tables):
            error = wished[table].error if table in wished else ""
            if error:
                out.print(escape(f"{table}: {error}"), style="red", highlight=False)
                return _FAILED
            if table not in wished:
                out.print(f"{escape(table)}: sent", highlight=False)
                tables.discard(table)
        if tables and holder(folder) is None:
            out.print("the instance ended: the next run continues the backfill")
            return _FAILED
        time.sleep(_LOOK_EVERY_S)
    return 0
