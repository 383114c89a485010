"""Options that several verbs have."""

from pathlib import Path
from typing import Annotated

import typer

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
Verbose = Annotated[
    int,
    typer.Option(
        "-v", "--verbose", count=True, show_default=False, help="Log more (debug)."
    ),
]
