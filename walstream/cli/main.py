"""The `walstream` command: its verbs, and how an error leaves the process."""

import os
import sys
import traceback
from typing import Annotated, NoReturn

import typer

from walstream import __version__
from walstream.cli.verbs import Verbs
from walstream.errors import WalstreamError
from walstream.telemetry import build, garbage, journal
from walstream.telemetry.structlog_loader import load_structlog
from walstream.telemetry.terminal import indented

app = typer.Typer(
    name="walstream",
    cls=Verbs,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:  # noqa: FBT001 - typer's callback
    if value:
        typer.echo(f"walstream {__version__} ({build.form()})")
        raise typer.Exit


@app.callback()
def _options(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "-V",
            "--version",
            callback=_version,
            is_eager=True,
            help="Show the version and exit.",
        ),
    ] = False,
) -> None:
    """Stream every committed change of a PostgreSQL database into Kafka, in order.

    Append-only tables of other SQL databases are polled. Start with: walstream init
    """


def main() -> None:
    """Run the command; an error of ours is one message and its exit code."""
    garbage.collect_rarely()
    load_structlog()
    try:
        app()
    except WalstreamError as error:
        _end(f"walstream: {indented(error.final())}\n", error.exit_code)
    except Exception:
        if not journal.is_stderr():
            raise
        _end(traceback.format_exc(), WalstreamError.exit_code)


def _end(words: str, exit_code: int) -> NoReturn:
    sys.stderr.write(journal.marked(words, "error") if journal.is_stderr() else words)
    sys.stderr.flush()
    os._exit(exit_code)
