"""Sentences for the events of the log, as a terminal shows them."""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from walstream.cli.output import duration
from walstream.telemetry.fields import HINT, LSN, SLOT, TABLE, TOPIC

_KAFKA: Final = re.compile(
    r"^(?:Connect to ipv[46]#(\S+) failed|connecting to (\S+:\d+)): (.+)$"
)
_POSTGRES: Final = re.compile(
    r'connection to server at "([^"]+)"(?: \([^)]*\))?, port (\d+) failed:'
    r"\s+(.+?)(?:\.? Is the server running.*)?$",
    re.DOTALL,
)
Fields = Mapping[str, object]
"""What an entry has beside its event, its level and its source."""


def of(event: str, fields: Fields) -> str:
    """Return the sentence of an event; without one, the event and its fields."""
    make = SENTENCES.get(event)
    if make is not None:
        try:
            return make(fields)
        except (KeyError, TypeError, ValueError):
            pass  # of another version's worker, which has other fields
    said = pairs(fields)
    return f"{event}  ({said})" if said else event


def text(value: object) -> str:
    """Return a value as it is said: numbers with separators, lists by commas."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list):
        return ", ".join(map(text, value))
    return str(value)


def pairs(fields: Fields) -> str:
    """Return fields that have a value: `lsn 0/4A8, rows 3`."""
    said = (
        (name.replace("_", " "), "" if value is None else text(value))
        for name, value in fields.items()
    )
    return ", ".join(f"{name} {value}" for name, value in said if value)


def counted(number: object, noun: str) -> str:
    """Return a number with its noun: `1 table`, `3 tables`."""
    return f"{text(number)} {noun}{'' if number == 1 else 's'}"


def plain_cause(error: str) -> str:
    """Return why a server is not reached as `address: cause`; else the error."""
    if found := _KAFKA.match(error):
        return f"{found[1] or found[2]}: {_begun_small(found[3])}"
    if found := _POSTGRES.search(error):
        return f"PostgreSQL at {found[1]}:{found[2]}: {_begun_small(found[3])}"
    return error


def _begun_small(cause: str) -> str:
    """Return it without a capital, but for `FATAL`."""
    return cause[:1].lower() + cause[1:] if cause[1:2].islower() else cause


def _streaming(fields: Fields) -> str:
    if "topics" in fields:
        return f"streaming {counted(fields['topics'], 'topic')}"
    where = f"streaming from {fields[LSN]}"
    if names := text(fields.get("publications", [])):
        return f"{where}: publication{'s' * (',' in names)} {names}"
    return where


def _backfilled(fields: Fields) -> str:
    took = duration(float(str(fields["seconds"])))
    rows = counted(fields["rows"], "row")
    tables = fields.get("tables")
    what = f"{counted(tables, 'table')}, {rows}" if tables is not None else rows
    given_up = text(fields.get("given_up", []))
    return f"backfilled {what}, {took}" + (f"; skipped: {given_up}" * bool(given_up))


def _page(fields: Fields) -> str:
    address = fields["address"]
    if fields.get("key") == "http.probes":
        return f"probes: http://{address}/health and /ready"
    return f"status page: http://{address}"


def _drained(fields: Fields) -> str:
    said = "drained: all that was read is delivered"
    return f"{said}, up to {fields[LSN]}" if LSN in fields else said


def _poll(fields: Fields) -> str:
    return f"polling {counted(fields['tables'], 'table')}"


def _backfill_begins(fields: Fields) -> str:
    return (
        f"backfilling {counted(fields['tables'], 'table')} in"
        f" {counted(fields['chunks'], 'chunk')}, as of {fields[LSN]}"
    )


def _backfilled_before(fields: Fields) -> str:
    return f"backfilled before: {counted(fields['rows'], 'row')} ({fields[HINT]})"


def _table_backfilled(fields: Fields) -> str:
    return f"backfilled table {fields[TABLE]}: {counted(fields['rows'], 'row')}"


def _read_again(fields: Fields) -> str:
    lines = text(fields.get("lines", []))
    return "configuration reloaded" + (f": {lines}" if lines else ": nothing changed")


SENTENCES: Final[Mapping[str, Callable[[Fields], str]]] = MappingProxyType(
    {
        "streaming": _streaming,
        "polling": _poll,
        "HTTP listens": _page,
        "drained": _drained,
        "slot created": lambda f: f"slot {f[SLOT]} created at {f[LSN]}",
        "slot adopted": lambda f: f"slot {f[SLOT]} adopted at {f[LSN]}",
        "topic created": lambda f: f"topic {f[TOPIC]} created",
        "table added to the publication": lambda f: (
            f"table {f[TABLE]} added to the publication"
        ),
        "backfill begins": _backfill_begins,
        "backfill ended": _backfilled,
        "backfilled before": _backfilled_before,
        "table backfilled": _table_backfilled,
        "stream begins again": lambda f: f"stream begins again: {f['reason']}",
        "the configuration was read": _read_again,
    }
)
"""By the event's name in the log, which stays what it is in JSON."""
