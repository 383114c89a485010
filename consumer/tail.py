"""One op in one line, for people who look on."""

import json
import re
from typing import Final

from consumer.op import Op
from consumer.values import Values
from walstream.lsn import show
from walstream.op import Kind

_PLAIN: Final = re.compile(r"[^\s'\"=(),\\\x00-\x1f]+")


def line(op: Op) -> str:
    """Show an op with its values; of an Update what changed, where that is known."""
    where = f"{op.record.topic}[{op.record.partition}] {show(op.lsn)}/{op.seq_id}"
    what = f"{op.kind.value}{' (snapshot)' if op.snapshot else ''}"
    head = f"{where} {what} {op.table.full_name}"
    match op.kind:
        case Kind.TRUNCATE:
            return head
        case Kind.DELETE:
            return f"{head} {_row(op.old)}"
        case Kind.INSERT:
            return f"{head} {_row(op.new)}"
        case Kind.UPDATE:
            return f"{head} {_row(op.new, op.old)}"


def _row(row: Values, old: Values | None = None) -> str:
    shown = []
    for name in row.columns:
        value = f"{_text(name)}={_text(row[name]) if name in row else '(not sent)'}"
        if old and name in old and name in row and old[name] != row[name]:
            value += f" (was {_text(old[name])})"
        shown.append(value)
    return " ".join(shown)


def _text(value: str | None) -> str:
    if value is None:
        return "NULL"
    if value != "NULL" and _PLAIN.fullmatch(value) and value.isprintable():
        return value
    return json.dumps(value, ensure_ascii=not value.isprintable())
