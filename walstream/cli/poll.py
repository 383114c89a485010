"""`walstream poll`: each table once, for cron and its like."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from walstream.cli.config_file import load
from walstream.cli.launch import run
from walstream.cli.options import ConfigFile
from walstream.cli.output import echo_error
from walstream.config import Config, SqlSource
from walstream.config.run_options import Options
from walstream.errors import ConfigError, WalstreamError
from walstream.state import control
from walstream.state.control_message import PollRequest
from walstream.state.lock import holder
from walstream.telemetry import logs

_LONGEST_S = 24 * 3600.0  # a poll without a limit may have all to read


def poll(
    sources: Annotated[
        list[str] | None,
        typer.Argument(metavar="SOURCE...", help="Without one, all sql sources."),
    ] = None,
    file: ConfigFile = None,
    *,
    once: Annotated[
        bool, typer.Option("--once", help="Poll each table once, and end.")
    ] = False,
    verbose: Annotated[
        int, typer.Option("-v", "--verbose", count=True, help="Log more.")
    ] = 0,
) -> None:
    """Poll the tables of sql sources once, and end when all is delivered.

    A running instance does it in its turn, and this waits for that.

    Example: walstream poll --once legacy
    """
    config = load(file)
    if verbose:
        config = config.model_copy(update={"log_level": "debug"})
    logs.configure(config.log_level, config.secrets.scrub)
    if not once:
        raise ConfigError(
            "walstream poll polls once: say --once",
            hint=f"{config.command('walstream run')} polls for ever",
        )
    chosen = _choose(config, sources or [])
    if holder(Path(config.state)) is not None:
        raise typer.Exit(_ask(config, chosen))
    alone = config.model_copy(update={"sources": chosen})
    raise typer.Exit(run(alone, Options(poll_once=True)))


def _ask(config: Config, sources: Iterable[str]) -> int:
    """Make the running instance poll them all; return the highest exit code."""
    code = 0
    for name in sources:
        try:
            control.ask(Path(config.state), PollRequest(name), _LONGEST_S)
        except WalstreamError as error:
            echo_error(config.secrets.scrub(str(error)))
            code = max(code, error.exit_code)
        else:
            typer.echo(f"{name}: polled by the running walstream")
    return code


def _choose(config: Config, names: list[str]) -> dict[str, SqlSource]:
    """Find the sources that are meant."""
    found = config.sql_sources
    if not found:
        raise ConfigError(
            "no sql source is configured", hint='add one with kind = "sql"'
        )
    return {name: config.sql_source(name) for name in names or found}
