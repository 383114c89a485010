"""`walstream backfill`: read tables once more, or views for once."""

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from walstream import backfilling, logs
from walstream.backfill import asking
from walstream.cli.options import ConfigFile
from walstream.cli.output import console
from walstream.config import Config, load
from walstream.control import ask_status, lent
from walstream.lock import holder
from walstream.options import Options
from walstream.run import run

_LOOK_EVERY_S = 0.5
_FAILED = 5


def backfill(  # noqa: PLR0913 - options
    tables: Annotated[
        list[str],
        typer.Argument(metavar="TABLE...", help="schema.table, or patterns of it."),
    ],
    file: ConfigFile = None,
    *,
    source: Annotated[
        str, typer.Option("--source", metavar="NAME", help="Where there are several.")
    ] = "",
    replace: Annotated[
        bool,
        typer.Option(
            "--replace", help="Readers empty each table first: repairs deletes too."
        ),
    ] = False,
    wait: Annotated[
        bool,
        typer.Option("--wait", help="End when a running instance is done."),
    ] = False,
    verbose: Annotated[
        int, typer.Option("-v", "--verbose", count=True, help="Log more.")
    ] = 0,
) -> None:
    """Send all rows of tables once more, in their place in the stream.

    Without a running instance it streams up to the snapshot, reads the tables with
    Spark, and ends. A running one reads them beside its stream.

    Example: walstream backfill public.orders --replace
    """
    config = load(file)
    if verbose:
        config = config.model_copy(update={"log_level": "debug"})
    logs.configure(config.log_level, config.secrets.scrub)
    name, found = asking.source_of(config, source)
    if holder(Path(config.state)) is not None:
        raise typer.Exit(_beside(config, name, tables, replace=replace, wait=wait))
    asked = asking.find(found, tables)
    with lent(config, name):
        asking.note(Path(config.state) / name, asked, anew=replace)
    alone = config.model_copy(update={"sources": {name: found}})
    raise typer.Exit(run(alone, Options(end_backfilled=True)))


def _beside(
    config: Config, source: str, tables: list[str], *, replace: bool, wait: bool
) -> int:
    """Have the running instance read them; give the exit code."""
    out = console()
    asked = backfilling.backfill(config, source, tables, replace=replace)
    for table, why in asked.left_out.items():
        out.print(f"left out: {table}: {why}", style="yellow", highlight=False)
    when = "beside the stream" if asked.running else "with the next walstream run"
    named = ", ".join(asked.tables) or "nothing"
    out.print(f"read {when}: {named}", highlight=False)
    if not asked.running:
        return 0
    if wait:
        return _follow(out, config, source, set(asked.tables))
    out.print(f"  $ {config.command('walstream status --watch')}", style="green")
    return 0


def _follow(out: Console, config: Config, source: str, tables: set[str]) -> int:
    """Wait until every table is done, or does not go on."""
    while True:
        running = ask_status(Path(config.state))
        if running is None:
            out.print("the instance ended: the next run goes on with it")
            return _FAILED
        told = running["sources"].get(source, {}).get("beside", {})
        for table in sorted(tables):
            how = told.get(table, {"state": "waiting"})
            if how["state"] == "error":
                out.print(f"{table}: {how['error']}", style="red", highlight=False)
                return _FAILED
            if how["state"] == "done":
                out.print(f"{table}: {how['rows']:,} rows sent", highlight=False)
                tables.discard(table)
        if not tables:
            return 0
        time.sleep(_LOOK_EVERY_S)
