"""An independent reader of a database's changes: test_decoding's text.

PostgreSQL's own test plugin prints what a slot decodes; this module reads that text,
and shares no code with walstream's decoder.
"""

import re
from dataclasses import dataclass, field
from typing import Final

import psycopg

from tests.support.fixtures.postgres import Database
from walstream.lsn import parse

PLUGIN: Final = "test_decoding"
_TABLE: Final = re.compile(
    r"table (\S+): (INSERT|UPDATE|DELETE|TRUNCATE): ?(.*)", re.DOTALL
)
_COLUMN: Final = re.compile(r"(\w+)\[[^\]]+(?:\[\])?\]:")
_UNCHANGED: Final = "unchanged-toast-datum"

Values = dict[str, str | None]


@dataclass(frozen=True)
class Change:
    table: str  # schema.table
    kind: str  # INSERT, UPDATE, DELETE
    old: Values | None  # without nulls: the plugin leaves them out
    new: Values | None


@dataclass
class Transaction:
    end_lsn: int = 0  # of the end of its commit record
    changes: list[Change] = field(default_factory=list)


def open_slot(database: Database, name: str) -> None:
    database.fetch("SELECT pg_create_logical_replication_slot(%s, %s)", name, PLUGIN)


def transactions(database: Database, slot: str) -> list[Transaction]:
    """Take all transactions with changes from the slot, in commit order."""
    with psycopg.connect(database.dsn, autocommit=True) as connection:
        rows = connection.execute(
            "SELECT lsn::text, data FROM pg_logical_slot_get_changes(%s, NULL, NULL,"
            " 'include-xids', '0', 'skip-empty-xacts', '1')",
            (slot,),
        ).fetchall()
    taken: list[Transaction] = []
    for lsn, text in rows:
        if text == "BEGIN":
            taken.append(Transaction())
        elif text == "COMMIT":
            taken[-1].end_lsn = parse(lsn)
        else:
            taken[-1].changes.append(_change(text))
    return taken


def _change(text: str) -> Change:
    found = _TABLE.fullmatch(text)
    assert found, text
    table, kind, body = found.groups()
    if kind == "DELETE":
        return Change(table, kind, _values(body), None)
    if body.startswith("old-key: "):
        old, new = body.removeprefix("old-key: ").split(" new-tuple: ", 1)
        return Change(table, kind, _values(old), _values(new))
    return Change(table, kind, None, _values(body))


def _values(text: str) -> Values:
    """Read `name[type]:value name[type]:'value' ...`."""
    values: Values = {}
    at = 0
    while at < len(text):
        head = _COLUMN.match(text, at)
        assert head, text[at:]
        value, at = _value(text, head.end())
        if value != _UNCHANGED:
            values[head[1]] = None if value == "null" else value.removeprefix("=")
        at += 1  # the blank
    return values


def _value(text: str, at: int) -> tuple[str, int]:
    """Give the value that begins there, a quoted one with `=` before it."""
    if text[at] != "'":
        end = text.find(" ", at)
        end = len(text) if end < 0 else end
        return text[at:end], end
    taken = ["="]
    at += 1
    while True:
        end = text.index("'", at)
        taken.append(text[at:end])
        if text[end + 1 : end + 2] != "'":
            return "".join(taken), end + 1
        taken.append("'")
        at = end + 2
