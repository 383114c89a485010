"""One line of the log, laid out for a person: a sentence, or a finding as `check` has.

The lines come from this process and from its workers, as JSON; what else comes is
printed as it is.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Final

from rich.console import Console
from rich.text import Text

from walstream.cli.live import sentences
from walstream.cli.output import print_finding, print_hanging
from walstream.errors import Repair
from walstream.finding import Finding, Severity
from walstream.telemetry.fields import (
    ERROR,
    HINT,
    REPAIR,
    SOURCE,
    TABLE,
    THEN,
    TOPIC,
)
from walstream.telemetry.terminal import escape, escape_lines

_SEVERITIES: Final[Mapping[str, Severity]] = MappingProxyType(
    {
        "warning": Severity.WARNING,
        "error": Severity.STOP,
        "critical": Severity.STOP,
    }
)
HIDDEN: Final = frozenset({"stats", "backfilling"})  # the status line has the figures
_SUBJECT: Final = "walstream"
_TRACEBACK: Final = "exception"
_PLACED: Final = frozenset({ERROR, HINT, REPAIR, THEN, SOURCE, "brokers", _TRACEBACK})
_NAMING: Final = (TABLE, TOPIC, "pattern", "key")  # what an entry is about: the first
# the error itself is the news
JOINED: Final = frozenset({"stopped", "trying again", "Kafka says another reason"})


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A line of the log, read."""

    event: str
    level: str = "info"
    time: str = ""  # of the local clock: 15:04:05
    fields: Mapping[str, object] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """Return a field as text; "" where it is missing."""
        found = self.fields.get(name)
        return "" if found is None else sentences.text(found)


def read(line: bytes) -> LogEntry | None:
    """Return the entry; None: the line is not one of our log."""
    if not line.startswith(b"{"):
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):  # no entry of ours nests so deep
        return None
    if not isinstance(found, dict) or not isinstance(found.get("event"), str):
        return None
    return LogEntry(
        event=found.pop("event"),
        level=str(found.pop("level", "info")),
        time=_clock(found.pop("timestamp", "")),
        fields=found,
    )


def _clock(timestamp: object) -> str:
    try:
        return f"{datetime.fromisoformat(str(timestamp)).astimezone():%H:%M:%S}"
    except (ValueError, OverflowError):  # local time may lie beyond the years
        return ""


def print_line(out: Console, line: bytes, command: Callable[[str], str]) -> None:
    """Print a line that came from any of the processes.

    `command` completes a command by the configuration's file.
    """
    entry = read(line)
    if entry is None:
        _print_as_it_is(out, line)
    elif entry.event not in HIDDEN:
        try:
            print_entry(out, entry, command)
        except RecursionError:  # it nests deeper than a sentence can be made of
            _print_as_it_is(out, line)


def _print_as_it_is(out: Console, line: bytes) -> None:
    if text := escape(line.decode(errors="replace").rstrip("\r")):
        out.print(Text(text, style="dim"), soft_wrap=True)


def print_entry(out: Console, entry: LogEntry, command: Callable[[str], str]) -> None:
    """Print a warning or an error as a finding, anything else as a line."""
    severity = _SEVERITIES.get(entry.level)
    if severity is None:
        print_hanging(out, _line(entry), indent=len(entry.time) + 4)
    else:
        print_finding(out, finding(entry, severity), command, margin=f"{entry.time}  ")
    if found := entry.text(_TRACEBACK):
        out.print(Text(escape_lines(found), style="dim"), soft_wrap=True)


def finding(entry: LogEntry, severity: Severity) -> Finding:
    """Return what a warning or an error says, by its parts."""
    error = sentences.plain_cause(entry.text(ERROR))
    what = entry.event
    if brokers := entry.text("brokers"):
        what += f" at {brokers}"
        error = error.removeprefix(f"{brokers}: ")
    if error and entry.event in JOINED:
        what = error
    elif error:
        what += f": {error}"
    named = next((name for name in _NAMING if entry.text(name)), "")
    others = {
        name: value
        for name, value in entry.fields.items()
        if name not in _PLACED | {named}
    }
    what += f"  ({sentences.pairs(others)})" if others else ""
    repair = entry.text(REPAIR)
    is_sql = repair.rstrip().endswith(";")  # as each statement does, and no command
    hint = entry.text(HINT)
    if entry.event == "trying again" and "tries again" not in hint:
        hint = f"{hint}; trying again" if hint else "trying again"
    return Finding(
        code="",
        subject=", ".join(filter(None, (entry.text(SOURCE), entry.text(named))))
        or _SUBJECT,
        what=what,
        why=hint,
        severity=severity,
        repair=Repair(
            sql=repair if is_sql else "",
            command="" if is_sql else repair,
            then=entry.text(THEN),
        ),
    )


def _line(entry: LogEntry) -> Text:
    style = "dim" if entry.level == "debug" else ""
    text = Text(f"{entry.time}    ", style="dim")
    source = entry.text(SOURCE)
    fields = {
        name: value
        for name, value in entry.fields.items()
        if name not in {SOURCE, _TRACEBACK}
    }
    if source:
        text.append(f"{escape(source)}: ", style=f"not dim bold {style}")
    text.append(escape(sentences.of(entry.event, fields)), style=style or "not dim")
    return text
