"""`walstream backfill`: read tables once more, or views for once."""

from pathlib import Path
from typing import Annotated

import typer

from walstream import logs
from walstream.backfill import asking
from walstream.cli.options import ConfigFile
from walstream.config import load
from walstream.control import lent
from walstream.options import Options
from walstream.run import run


def backfill(
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
    asked = asking.find(found, tables)
    with lent(config, name):
        asking.note(Path(config.state) / name, asked, anew=replace)
    alone = config.model_copy(update={"sources": {name: found}})
    raise typer.Exit(run(alone, Options(end_backfilled=True)))
