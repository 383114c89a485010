"""Options that several verbs have."""

from pathlib import Path
from typing import Annotated

import typer

from walstream.cli import completion
from walstream.config import Config
from walstream.errors import ConfigError

ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "-c",
        "--config",
        metavar="FILE",
        help="The configuration; default: ./walstream.toml, else"
        " /etc/walstream/walstream.toml.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
PrintSchema = Annotated[
    bool, typer.Option("--json-schema", help="Print the JSON schema of --json.")
]
Yes = Annotated[bool, typer.Option("-y", "--yes", help="Do not ask.")]
AdoptSlot = Annotated[
    bool,
    typer.Option(
        "--adopt-slot",
        help="Also drop a slot that the state does not know: it is the source's.",
    ),
]
Verbose = Annotated[
    int,
    typer.Option(
        "-v",
        "--verbose",
        count=True,
        show_default=False,
        help="Log more (debug).",
    ),
]
SourceArgument = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="The source's name.",
        show_default=False,
        autocompletion=completion.sources,
    ),
]
SourceOption = Annotated[
    str,
    typer.Option(
        "--source",
        metavar="NAME",
        help="The same as SOURCE.",
        autocompletion=completion.sources,
    ),
]


def source_named(argument: str, option: str) -> str:
    """Return the source that the argument or the option names; "": neither does."""
    if argument and option and argument != option:
        raise ConfigError(f"{argument!r} and --source {option!r} are two sources")
    return argument or option


def source_demanded(config: Config, argument: str, option: str) -> str:
    """Return the source that is named; raise ConfigError where none is."""
    name = source_named(argument, option)
    if not name:
        known = ", ".join(sorted(config.sources)) or "none"
        raise ConfigError("which source?", hint=f"configured are: {known}")
    return name
