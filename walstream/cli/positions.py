"""`walstream positions`: what is kept of each source's progress."""

import sys
from typing import Annotated

import typer

from walstream import logs
from walstream.cli.run import ConfigFile
from walstream.config import load
from walstream.errors import ConfigError
from walstream.resetting import reset as reset_source

app = typer.Typer(help="What is kept of each source's progress.", no_args_is_help=True)


@app.callback()
def _positions() -> None:
    """Look at, or forget, what is kept of each source's progress."""


@app.command()
def reset(
    source: Annotated[str, typer.Argument(help="The source's name.")],
    file: ConfigFile = None,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Forget a source's position and drop its slot: the next run begins anew.

    Example: walstream positions reset app
    """
    config = load(file)
    logs.configure(config.log_level, config.secrets.scrub)

    def consent(what: str) -> bool:
        typer.echo(what)
        if yes:
            return True
        if not sys.stdin.isatty():
            raise ConfigError("nobody is here to agree", hint="add --yes")
        return typer.confirm("Go on?")

    typer.echo(reset_source(config, source, consent))
