"""`walstream config`: the effective configuration, or its JSON schema."""

import json
from pathlib import Path
from typing import Annotated

import typer

from walstream import config as configuration
from walstream.cli.output import echo, echo_error
from walstream.errors import WalstreamError


def config(
    file: Annotated[
        Path | None,
        typer.Option("--config", "-c", metavar="FILE", help="The configuration file."),
    ] = None,
    *,
    schema: Annotated[
        bool,
        typer.Option(
            "--json-schema", help="Print the JSON schema of the configuration instead."
        ),
    ] = False,
) -> None:
    """Print the effective configuration, with secrets masked.

    Example: walstream config -c walstream.toml
    """
    if schema:
        typer.echo(json.dumps(configuration.schema(), indent=2))
        return
    try:
        loaded = configuration.load(file)
    except WalstreamError as error:
        echo_error(error)
        raise typer.Exit(error.exit_code) from None
    echo(configuration.mask(loaded).removesuffix("\n"))
