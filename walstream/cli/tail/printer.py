"""Prints changes: in lines for people, as JSON, or by a template."""

import io
import shutil
import sys
from typing import Final

from rich.text import Text

from walstream.cli.output import console
from walstream.cli.tail import json_lines, screen
from walstream.cli.tail.change import Change
from walstream.cli.tail.escape import as_text
from walstream.cli.tail.layout import Line, plain
from walstream.cli.tail.template import Template
from walstream.telemetry.terminal import escape_lines

_PIPE_WIDTH: Final = 100


class Printer:
    """Writes each change at once, so that a pipe's reader never waits."""

    def __init__(
        self, *, as_json: bool, full: bool, template: Template | None = None
    ) -> None:
        # of what an encoding lacks nothing is lost, and JSON is UTF-8 anywhere
        encoding = "utf-8" if as_json else None
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding=encoding, errors="backslashreplace")
        self._as_json = as_json
        self._full = full
        self._template = template
        self._console = console()

    def print(self, change: Change) -> None:
        """Write a change, and flush it."""
        if self._template is not None:
            self._write(self._template.render(change.record))
            return
        if self._as_json:
            text = json_lines.line(change)
        else:
            shown = screen.lines(change, self._width(), full=self._full)
            text = "\n".join(map(self._render, shown))
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    def _write(self, rendered: bytes) -> None:
        """Write the bytes as they are; at a terminal, what could drive it is spelt."""
        if self._console.is_terminal:
            sys.stdout.write(escape_lines(as_text(rendered)))
        else:
            sys.stdout.buffer.write(rendered)
        sys.stdout.flush()

    def _width(self) -> int | None:
        """Ask each time: a terminal changes its size."""
        if self._console.is_terminal:
            return shutil.get_terminal_size((_PIPE_WIDTH, 24)).columns
        return None if self._full else _PIPE_WIDTH

    def _render(self, line: Line) -> str:
        if not self._console.is_terminal:
            return plain(line)
        with self._console.capture() as captured:
            self._console.print(Text.assemble(*line), soft_wrap=True, end="")
        return captured.get()
