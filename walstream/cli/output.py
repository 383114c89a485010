"""Output of the verbs: tables and findings for people, JSON for programs.

Everything fits 100 columns, and is plain text in a pipe. Commands and SQL are never
wrapped: they are there to be copied. What others wrote (names of tables, messages of
servers) cannot drive the terminal, nor pass for a line of ours.
"""

import json
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import typer
from pydantic import TypeAdapter
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from walstream.errors import Repair
from walstream.finding import Finding, Severity
from walstream.telemetry.terminal import escape, escape_json, escape_lines, indented

_WIDEST: Final = 100
_INDENT: Final = "    "
_SIGNS: Final = {
    Severity.STOP: ("✗", "bold red"),
    Severity.WARNING: ("!", "yellow"),
    Severity.NOTE: ("·", "cyan"),
}
# how a line begins that an operator believes, or runs
_OURS: Final = ("$", "SQL>", "then:", "✓", *(sign for sign, _ in _SIGNS.values()))
_SIZES: Final = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_QUOTES: Final = "\"'"
_TIMES: Final = ((86400, "d"), (3600, "h"), (60, "min"))


class EscapingConsole(Console):
    """Spells what would drive the terminal, wherever it came from."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(escape_lines(segment.text), segment.style)


def console() -> Console:
    """Open stdout: colours on a terminal, plain text of the same width elsewhere."""
    width = _WIDEST
    if sys.stdout.isatty():
        width = min(_WIDEST, shutil.get_terminal_size((_WIDEST, 24)).columns)
    return EscapingConsole(width=width, highlight=False, emoji=False, markup=False)


def table(*headings: str, right: Iterable[str] = ()) -> Table:
    """Make a table without frames; `right` names the columns of numbers."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    numbers = set(right)
    for heading in headings:
        made.add_column(heading, justify="right" if heading in numbers else "left")
    return made


def size(number: int | None) -> str:
    """Write a number of bytes: 1.5 GiB."""
    if number is None:
        return "?"
    for unit, name in _SIZES:
        if abs(number) >= unit:
            return f"{number / unit:.1f} {name}"
    return f"{number} B"


def rate(per_s: float | None) -> str:
    """Write a rate without its unit; "-" where nothing runs."""
    return "-" if per_s is None else f"{per_s:,.0f}"


def duration(seconds: float | None) -> str:
    """Write a time: 0.2 s, 14 s, 3.5 min."""
    if seconds is None:
        return "?"
    for unit, name in _TIMES:
        if seconds >= unit:
            return f"{seconds / unit:.1f} {name}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"  # noqa: PLR2004


def count(number: int, noun: str) -> str:
    """Write a number of things: 1 table, 2 tables."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def echo(text: str, *, err: bool = False) -> None:
    """Print a text of several lines, perhaps, as it is."""
    typer.echo(escape_lines(text), err=err)


def echo_error(error: object) -> None:
    """Print on stderr what went wrong."""
    typer.echo(f"walstream: {indented(str(error))}", err=True)


def print_wrapped(text: str) -> None:
    """Print prose, wrapped between words under its own beginning."""
    out = console()
    indent = " " * (len(text) - len(text.lstrip()))
    for line in Text(text.strip()).wrap(out, out.width - len(indent)):
        line.rstrip()
        out.print(Text(indent) + line)


def print_json(document: Any) -> None:
    """Print a document as the schema of its type has it."""
    text = TypeAdapter(type(document)).dump_json(document, indent=2).decode()
    sys.stdout.write("\n".join(map(escape_json, text.split("\n"))) + "\n")


def print_schema(document: type) -> None:
    """Print the JSON schema of what `--json` prints."""
    schema = TypeAdapter(document).json_schema(mode="serialization")
    sys.stdout.write(f"{json.dumps(schema, indent=2)}\n")


def print_findings(
    out: Console, findings: Sequence[Finding], command: Callable[[str], str]
) -> None:
    """Print each finding with its reason and its repair.

    `command` completes a command by the configuration's file.
    """
    for finding in findings:
        print_finding(out, finding, command)


def print_finding(
    out: Console, finding: Finding, command: Callable[[str], str], margin: str = "  "
) -> None:
    """Print one; the `margin` stands before its sign."""
    sign, style = _SIGNS[finding.severity]
    head = Text(margin, style="dim").append(f"{sign} ", style=f"not dim {style}")
    head.append(f"{escape(finding.subject)}: ", style="not dim bold")
    head.append(_prose(finding.what), style=f"not dim {style}")
    print_hanging(out, head)
    if finding.why and finding.why != finding.repair.then:
        print_hanging(out, Text(f"{_INDENT}{_prose(finding.why)}", style="dim"))
    print_repair(out, finding.repair, command)


def _prose(text: str) -> str:
    """Leave its lines, unless one begins like ours: a name may hold a command."""
    first, *rest = map(escape, text.split("\n"))
    for line in rest:
        first += (r"\n" if line.lstrip().startswith(_OURS) else "\n") + line
    return first


def print_hanging(out: Console, text: Text, indent: int = len(_INDENT)) -> None:
    """Print a text, wrapped under its own beginning."""
    first, *rest = text.wrap(out, out.width - indent)
    out.print(first)
    for line in rest:
        out.print(Text(" " * indent) + line)


def print_repair(out: Console, repair: Repair, command: Callable[[str], str]) -> None:
    """Print what cures it, in lines that can be copied."""
    for line in _statements(repair.sql):
        _print_whole(out, f"{_INDENT}SQL> ", line)
    for line in _statements(repair.command):
        _print_whole(out, f"{_INDENT}$ ", command(line))
    if repair.then:
        before = "then: " if repair.sql or repair.command else ""
        then = _prose(repair.then)
        print_hanging(out, Text(f"{_INDENT}{before}{then}", style="green"))


def _statements(text: str) -> Iterator[str]:
    """Yield line after line; one that ends within quotes goes on in the next."""
    line, quote = "", ""
    for char in text.rstrip("\n"):
        if char in _QUOTES and quote in {"", char}:
            quote = "" if quote else char
        if char == "\n" and not quote:
            yield line
            line = ""
        else:
            line += escape(char)
    if line:
        yield line


def _print_whole(out: Console, prompt: str, line: str) -> None:
    text = Text(prompt, style="dim")
    text.append(line, style="green")
    out.print(text, soft_wrap=True)
