"""`walstream debug`: switches debug logging of the running instance."""

from enum import StrEnum
from typing import Annotated

import typer

from walstream.cli.config_file import load
from walstream.cli.options import ConfigFile
from walstream.state import control
from walstream.state.control_message import DebugRequest

_LONGEST_S = 10.0


class Switch(StrEnum):
    ON = "on"
    OFF = "off"


def debug(
    switch: Annotated[
        Switch,
        typer.Argument(metavar="SWITCH", help="on, or off (the configured level)."),
    ],
    file: ConfigFile = None,
) -> None:
    """Switch debug logging of the running instance on or off.

    Example: walstream debug on -c walstream.toml
    """
    config = load(file)
    request = DebugRequest(switch is Switch.ON)
    answer = control.ask_running(config, request, _LONGEST_S)
    typer.echo(f"every process logs from level {answer.level} on")
