"""`walstream poll`: each table once, for cron and its like."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated

import typer

from walstream.cli import completion
from walstream.cli.config_file import load
from walstream.cli.launch import run
from walstream.cli.options import ConfigFile, Verbose
from walstream.cli.output import echo, echo_error
from walstream.config import Config, SqlSource
from walstream.config.model import Http
from walstream.config.run_options import Options
from walstream.errors import ConfigError, WalstreamError
from walstream.sources.report import TableReport
from walstream.state import control
from walstream.state.control_message import PollRequest
from walstream.state.lock import holder
from walstream.status.lookup.sql import kept_of
from walstream.telemetry import logs

_NO_HTTP = Http(listen="")  # it is over before anybody looks
_LONGEST_S = 24 * 3600.0  # a poll without a limit may have all to read


def poll(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SOURCE",
            help="Default: all sql sources.",
            autocompletion=completion.polled_sources,
        ),
    ] = None,
    file: ConfigFile = None,
    *,
    named: Annotated[
        list[str] | None,
        typer.Option(
            "--source",
            metavar="NAME",
            help="The same as SOURCE.",
            autocompletion=completion.polled_sources,
        ),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", hidden=True, help="What it does in any case.")
    ] = False,
    verbose: Verbose = 0,
) -> None:
    """Poll the tables of sql sources once, and end when all is delivered.

    Prints how many rows of each table were sent. If an instance runs, it polls, and
    this waits. To poll again and again: walstream run.

    Example: walstream poll legacy
    """
    del once  # it was demanded once
    config = load(file)
    if verbose:
        config = config.model_copy(update={"log_level": "debug"})
    logs.configure(config.log_level, config.secrets.scrub)
    chosen = _choose(config, [*(sources or ()), *(named or ())])
    before = _stored(config, chosen)
    if holder(Path(config.state)) is not None:
        code = _ask(config, chosen)
    else:
        update = {"sources": chosen, "http": _NO_HTTP}
        code = run(config.model_copy(update=update), Options(poll_once=True))
    for line in _sent(before, _stored(config, chosen)):
        echo(line)
    raise typer.Exit(code)


_Tables = dict[str, TableReport]
"""By `SOURCE.TABLE`."""


def _stored(config: Config, sources: Mapping[str, SqlSource]) -> _Tables:
    """Read how far each table is."""
    return {
        f"{name}.{table}": kept.tables.get(table, TableReport())
        for name, source in sources.items()
        for kept in [kept_of(source, Path(config.state) / name)]
        for table in source.tables
    }


def _sent(before: _Tables, after: _Tables) -> Iterator[str]:
    """Yield a line for each table: what was sent of it meanwhile."""
    for name, now in after.items():
        rows = max(0, now.rows - before[name].rows)
        sent = f"{rows:,} row{'' if rows == 1 else 's'}" if rows else "no new rows"
        upto = "" if now.key is None else f", up to key {now.key}"
        yield f"{name}: {sent}{upto}"


def _ask(config: Config, sources: Iterable[str]) -> int:
    """Make the running instance poll them all; return the highest exit code."""
    code = 0
    for name in sources:
        try:
            control.ask(Path(config.state), PollRequest(name), _LONGEST_S)
        except WalstreamError as error:
            echo_error(config.secrets.scrub(str(error)))
            code = max(code, error.exit_code)
    return code


def _choose(config: Config, names: list[str]) -> dict[str, SqlSource]:
    """Find the sources that are meant."""
    found = config.sql_sources
    if not found:
        raise ConfigError(
            "no sql source is configured", hint='add one with kind = "sql"'
        )
    return {name: config.sql_source(name) for name in names or found}
