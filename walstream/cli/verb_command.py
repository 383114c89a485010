"""Commands as typer makes them, with the help that walstream shows.

Flags and arguments show no type, and prose is wrapped for the terminal. A flag that was
renamed works under its old name for one release, and a notice names the new one. An
empty value is refused: a variable of the shell that is not set must not mean "all".
"""

from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from walstream.errors import ConfigError

_MAY_BE_EMPTY: Final = frozenset({"key"})  # of a record, for `tail`
_RENAMED: Final = {"--schema": "--json-schema"}


class VerbCommand(TyperCommand):
    """A verb, or one of the verbs of a group."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.help = reflow(self.help)

    def get_params(self, ctx: Any) -> Any:
        """Return the parameters; flags without a type."""
        return without_types(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; names of an earlier release count too.

        Raises ConfigError for an empty value.
        """
        words = renamed(self, args)
        check_values(self, ctx, words)
        return super().parse_args(ctx, words)


class VerbGroup(TyperGroup):
    """A verb that has verbs of its own."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.help = reflow(self.help)

    def get_params(self, ctx: Any) -> Any:
        """Return the parameters; flags without a type."""
        return without_types(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; names of an earlier release count too.

        Raises ConfigError for an empty value.
        """
        words = renamed(self, args)
        check_values(self, ctx, words)
        return super().parse_args(ctx, words)


def reflow(text: str | None) -> str | None:
    """Join the lines of each paragraph: a terminal has a width of its own."""
    if text is None:
        return None
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def without_types(parameters: Any) -> Any:
    """Return the parameters as they are, but for the types of flags and arguments."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False) or getattr(parameter, "count", False):
            parameter.metavar = ""
        elif parameter.param_type_name == "argument":
            parameter.display_type_rich = _no_type
    return parameters


def _no_type(ctx: Any) -> str:  # noqa: ARG001 - typer's signature
    return ""


def renamed(command: Any, args: list[str]) -> list[str]:
    """Replace flags of an earlier release, and name the new ones on stderr."""
    known = {name for parameter in command.params for name in parameter.opts}
    replaced = list(args)
    for place, word in enumerate(args):
        if word == "--":
            break
        new = _RENAMED.get(word)
        if new is not None and word not in known and new in known:
            typer.echo(f"walstream: {word} is deprecated: use {new}", err=True)
            replaced[place] = new
    return replaced


def check_values(command: Any, ctx: Any, args: list[str]) -> None:
    """Raise ConfigError where the words give an empty value to an option or argument.

    What is not given is not empty, nor is a variable of the environment.
    """
    if ctx.resilient_parsing or not any(not w or w.endswith("=") for w in args):
        return
    given, _, _ = command.make_parser(ctx).parse_args(args=[*args])
    for parameter in command.params:
        if parameter.name in _MAY_BE_EMPTY:
            continue
        value = given.get(parameter.name)
        if value == "" or (isinstance(value, (list, tuple)) and "" in value):
            option = parameter.param_type_name == "option"
            name = max(parameter.opts, key=len) if option else parameter.metavar
            raise ConfigError(
                f"{name} is empty", hint="give it a value, or leave it out"
            )
