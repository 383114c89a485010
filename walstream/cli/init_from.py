"""`walstream init --from`: what became of each key of a connector, and the file."""

import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Final

import typer
from rich.text import Text

from walstream.admin.connector.draft import Fate, KeyReport
from walstream.admin.init_from import InitFrom, InitFromOptions
from walstream.cli.output import console, count, print_hanging, print_repair
from walstream.config.load import DEFAULT_FILES
from walstream.errors import Repair
from walstream.telemetry.terminal import escape

_STYLES: Final = {
    Fate.TRANSLATED: "green",
    Fate.NO_EFFECT: "dim",
    Fate.TO_DECIDE: "yellow",
}
_GUIDE: Final = "docs/migrating/debezium.md leads through the hand-over."


def init_from(
    options: InitFromOptions,
    agreed: Callable[[list[str]], bool],
    check: Callable[[Path], None],
) -> None:
    """Translate, write, and report; ends with 3 where something is to decide.

    `agreed` asks whether servers may go unproven, `check` prints what check thinks.
    """
    translated = InitFrom.read(options, os.environ)
    problems = [one for part in translated.unproven for one in part]
    secrets = translated.write(insecure=agreed(problems))
    reports = translated.reports
    out = console()
    numbers = ", ".join(
        f"{sum(one.fate is fate for one in reports)} {fate.value}" for fate in Fate
    )
    keys = count(len({one.key for one in reports}), "key")
    out.print(f"{options.output} is written: {keys}: {numbers}", soft_wrap=True)
    for path in secrets:
        out.print(f"{path} holds a secret; only you can read it", soft_wrap=True)
    for fate in Fate:
        _print_part(fate, [one for one in reports if one.fate is fate])
    out.print()
    check(options.output)
    out.print()
    out.print(_GUIDE)
    named = options.output != DEFAULT_FILES[0]
    suffix = f" -c {shlex.quote(str(options.output))}" if named else ""
    command = f"walstream check{suffix}"
    out.print(Text("  $ ", "dim").append(command, "green"), soft_wrap=True)
    if translated.exit_code:
        raise typer.Exit(translated.exit_code)


def _print_part(fate: Fate, reports: list[KeyReport]) -> None:
    if not reports:
        return
    out = console()
    out.print()
    out.print(Text(fate.value, "bold"))
    for report in reports:
        line = Text("  ").append(f"{escape(report.key)}: ", "bold")
        print_hanging(out, line.append(escape(report.text), _STYLES[fate]))
        print_repair(out, Repair(sql=report.sql), str)
