"""The man page, made of the command line itself: `python manual.py VERSION`.

Run by a Python that has walstream. What is not in the command's own help is not here.
"""

import sys
from collections.abc import Iterator
from typing import Any, Final

from typer.main import get_command

from walstream.cli.main import app

_FILES: Final = (
    ("/etc/walstream/walstream.toml", "the configuration, every key with its default"),
    ("/var/lib/walstream", "the positions; they must outlive the process"),
    ("/usr/share/doc/walstream", "licences, bill of materials, examples"),
)
_EXITS: Final = (
    ("0", "done, or drained"),
    ("1", "a defect"),
    ("2", "usage or configuration"),
    ("3", "a gap, or another history: an operator decides"),
    ("4", "a right is missing"),
    ("5", "try again: a server does not answer"),
)


def page(version: str) -> Iterator[str]:
    """Give the lines of the page."""
    root: Any = get_command(app)
    yield f'.TH WALSTREAM 1 "" "walstream {version}" "User Commands"'
    yield from (".SH NAME", "walstream \\- PostgreSQL's changes into Kafka, in order")
    yield from (".SH SYNOPSIS", ".B walstream", r"\fICOMMAND\fR [\fIOPTION\fR]...")
    yield from (".SH DESCRIPTION", *_text(root.help))
    yield from (".SH OPTIONS", *_options(root))
    yield ".SH COMMANDS"
    yield from _commands(root, "walstream")
    yield from (".SH EXIT STATUS", *_table(_EXITS))
    yield from (".SH FILES", *_table(_FILES))


def _commands(group: Any, path: str) -> Iterator[str]:
    for name, command in group.commands.items():
        whole = f"{path} {name}"
        if hasattr(command, "commands"):
            yield from _commands(command, whole)
            continue
        arguments = " ".join(
            one.metavar or str(one.name).upper()
            for one in command.params
            if one.param_type_name == "argument"
        )
        yield f'.SS "{_safe(f"{whole} {arguments}".strip())}"'
        yield from (*_text(command.help), *_options(command))


def _options(command: Any) -> Iterator[str]:
    for one in command.params:
        if one.param_type_name != "option" or getattr(one, "hidden", False):
            continue
        names = ", ".join((*one.opts, *one.secondary_opts))
        takes = "" if one.is_flag or one.count else f" {one.metavar or 'VALUE'}"
        yield from (".TP", f".B {_safe(names + takes)}", *_text(one.help))


def _table(rows: tuple[tuple[str, str], ...]) -> Iterator[str]:
    for name, what in rows:
        yield from (".TP", f".B {_safe(name)}", _safe(what))


def _text(text: str | None) -> Iterator[str]:
    """Give a help's paragraphs; what is indented or an example stands as it is."""
    for number, paragraph in enumerate((text or "").strip().split("\n\n")):
        if number:
            yield ".PP"
        yield from (_safe(line.strip()) for line in paragraph.split("\n"))


def _safe(text: str) -> str:
    """Give it as troff prints it: no line is a request, no dash a hyphen."""
    text = text.replace("\\", r"\e").replace("-", r"\-").replace('"', r"\(dq")
    return rf"\&{text}" if text.startswith((".", "'")) else text


if __name__ == "__main__":
    sys.stdout.write("".join(f"{line}\n" for line in page(sys.argv[1])))
