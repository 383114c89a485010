"""The verbs by their names: the module of each is loaded when that one is wanted.

`walstream run` would hold in memory what all the others load, as long as it runs.
"""

from collections import UserDict
from importlib import import_module
from typing import Any, Final

import typer
from typer.core import TyperGroup

VERBS: Final = {  # a function or a group of them, of walstream.cli.VERB or of MODULE:
    "run": "run",
    "init": "init",
    "check": "check_command",
    "status": "status",
    "reload": "reload",
    "debug": "debug",
    "backfill": "backfill",
    "poll": "poll",
    "config": "config",
    "tail": "tail.command:tail",
    "demo": "demo.command:demo",
    "slots": "app",
    "positions": "app",
}


_INTERRUPTED: Final = 130  # 1 would be a defect


class Verbs(TyperGroup):
    """The command that has them all."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Commands(VERBS)

    def invoke(self, ctx: Any) -> Any:
        """Run the verb; Ctrl-C at a question ends it as Ctrl-C does elsewhere."""
        try:
            return super().invoke(ctx)
        except typer.Abort:
            typer.echo("\nnothing was changed", err=True)
            raise typer.Exit(_INTERRUPTED) from None


class _Commands(UserDict[str, Any]):
    """Makes a command when it is asked for by name; names alone load nothing."""

    def __getitem__(self, verb: str) -> Any:
        found = super().__getitem__(verb)
        if isinstance(found, str):
            self[verb] = found = _command(verb, found)
        return found


def _command(verb: str, name: str) -> Any:
    alone = typer.Typer(add_completion=False)
    alone.callback()(_nothing)  # with one, typer makes a group of a single verb too
    module, _, function = name.rpartition(":")
    found = getattr(import_module(f"walstream.cli.{module or verb}"), function)
    if isinstance(found, typer.Typer):
        alone.add_typer(found, name=verb)
    else:
        alone.command(verb)(found)
    group: Any = typer.main.get_command(alone)
    return group.commands[verb]


def _nothing() -> None:
    pass
