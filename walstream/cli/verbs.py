"""The verbs by their names: the module of each is loaded when that one is wanted.

`walstream run` would hold in memory what all the others load, as long as it runs.
"""

from collections import UserDict
from importlib import import_module
from typing import Any, Final, NamedTuple

import typer

from walstream.cli.verb_command import VerbCommand, VerbGroup

_START: Final = "Start"
_OPERATE: Final = "Operate"
_REPAIR: Final = "Repair"
_RUN_CODES: Final = """\
Exit codes: 0 drained, or done; 1 a defect; 2 usage or configuration; 3 a gap in the
changes, or another server's history; 4 a right is missing. An outage (5) ends nothing:
run waits and tries again."""
_CHECK_CODES: Final = """\
Exit codes: 0 run would start; 1 a defect; 2 usage or configuration; 3 a gap in the
changes, or another server's history; 4 a right is missing; 5 run would wait and try
again."""
_STATUS_CODES: Final = """\
Exit codes: 0 all is well; 1 to 4 as run ended; 5 a source waits, is blocked, or holds
too much WAL or disk."""


class Verb(NamedTuple):
    """The module of a verb, and its heading in the help."""

    function: str  # or a group: of walstream.cli.VERB, or of MODULE:
    panel: str
    codes: str = ""


VERBS: Final = {
    "init": Verb("init", _START),
    "check": Verb("check_command", _START, _CHECK_CODES),
    "run": Verb("run", _START, _RUN_CODES),
    "demo": Verb("demo.command:demo", _START),
    "status": Verb("status", _OPERATE, _STATUS_CODES),
    "tail": Verb("tail.command:tail", _OPERATE),
    "poll": Verb("poll", _OPERATE),
    "config": Verb("config", _OPERATE),
    "reload": Verb("reload", _OPERATE),
    "debug": Verb("debug", _OPERATE),
    "backfill": Verb("backfill", _REPAIR),
    "positions": Verb("app", _REPAIR),
    "slots": Verb("app", _REPAIR),
    "destroy": Verb("destroy", _REPAIR),
}


_INTERRUPTED: Final = 130  # 1 would be a defect


class Verbs(VerbGroup):
    """The command that has them all."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Commands(VERBS)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; `help VERB` and `version` are known, too."""
        if args[:1] == ["help"]:
            args = [*args[1:], "--help"]
        elif args[:1] == ["version"]:
            args = ["--version", *args[1:]]
        return super().parse_args(ctx, args)

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
        if isinstance(found, Verb):
            self[verb] = found = _command(verb, found)
        return found


def _command(verb: str, place: Verb) -> Any:
    alone = typer.Typer(add_completion=False)
    alone.callback()(_nothing)  # with one, typer makes a group of a single verb too
    module, _, function = place.function.rpartition(":")
    found = getattr(import_module(f"walstream.cli.{module or verb}"), function)
    if isinstance(found, typer.Typer):
        alone.add_typer(found, name=verb, cls=VerbGroup, rich_help_panel=place.panel)
    else:
        codes = place.codes.replace("\n", " ") or None
        alone.command(verb, cls=VerbCommand, epilog=codes, rich_help_panel=place.panel)(
            found
        )
    group: Any = typer.main.get_command(alone)
    return group.commands[verb]


def _nothing() -> None:
    pass
