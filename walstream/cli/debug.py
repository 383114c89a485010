"""`walstream debug`: the running instance logs more, or as configured."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from walstream import control
from walstream.cli.loading import load
from walstream.cli.options import ConfigFile
from walstream.errors import ConfigError

_LONGEST_S = 10.0


class Switch(StrEnum):
    ON = "on"
    OFF = "off"


def debug(
    switch: Annotated[
        Switch,
        typer.Argument(metavar="SWITCH", help="on, or off: as it is configured."),
    ],
    file: ConfigFile = None,
) -> None:
    """Have every process of the running instance log from level debug on.

    Example: walstream debug on -c walstream.toml
    """
    config = load(file)
    request = {"do": "debug", "on": switch is Switch.ON}
    answer = control.ask(Path(config.state), request, _LONGEST_S)
    if answer is None:
        raise ConfigError(
            f"no walstream runs with the state in {config.state}",
            hint=f"{config.command('walstream run')} starts one",
        )
    typer.echo(f"every process logs from level {answer['level']} on")
