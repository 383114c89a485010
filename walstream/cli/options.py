"""Options that several verbs have, said once."""

from pathlib import Path
from typing import Annotated

import typer

ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "-c",
        "--config",
        metavar="FILE",
        help="./walstream.toml, else /etc/walstream/walstream.toml",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
PrintSchema = Annotated[
    bool, typer.Option("--schema", help="Print the JSON schema of --json.")
]
