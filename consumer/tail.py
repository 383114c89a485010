"""One record in one line, for people who look on."""

import json
import re
import sys
from collections.abc import Mapping
from typing import Final

from consumer.op import ConsumerRecord, Op
from consumer.values import Values
from walstream.formats.debezium.decode import is_other, key_names
from walstream.formats.debezium.position import HEADER, read_header
from walstream.lsn import show
from walstream.op import Kind

_ROW_SCHEMA: Final = ".Value"  # how Debezium's names of rows' schemas end
_PLAIN: Final = re.compile(r"[^\s'\"=(),\\\x00-\x1f]+")


def line(op: Op) -> str:
    """Show an op with its values; of an Update what changed, where that is known."""
    where = f"{_where(op.record)} {show(op.lsn)}/{op.seq_id}"
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


def other_line(record: ConsumerRecord) -> str | None:
    """Show what holds no op: a row alone, a message, BEGIN and END, a heartbeat.

    None: it is none of these.
    """
    try:
        found = json.loads(record.value or b"")
        wrapped = found.keys() == {"schema", "payload"}
        fields = found["payload"] if wrapped else found
        place = dict(record.headers).get(HEADER)
        position = None if place is None else read_header(place)
        if is_other(fields, key_names(record.key)):
            said = _fields(fields)
            return f"{_where(record)} {fields.get('status', 'heartbeat')} {said}"
        if fields.get("op") == "m" and "message" in fields:
            lsn = fields["source"]["lsn"]
            return f"{_where(record)} {show(lsn)} message {_fields(fields['message'])}"
        if position is not None:
            lsn, seq_id = position
            return f"{_where(record)} {show(lsn)}/{seq_id} row {_fields(fields)}"
        if wrapped and found["schema"]["name"].endswith(_ROW_SCHEMA):
            return f"{_where(record)} row {_fields(fields)}"
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        pass
    return None


def _where(record: ConsumerRecord) -> str:
    return f"{record.topic}[{record.partition}]"


def _fields(fields: Mapping[str, object]) -> str:
    return " ".join(f"{_text(name)}={_json(value)}" for name, value in fields.items())


def _json(value: object) -> str:
    if value is None or isinstance(value, str):
        return _text(value)
    return json.dumps(value, separators=(",", ":"))


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


if __name__ == "__main__":
    from consumer.__main__ import main

    sys.exit(main(["tail", *sys.argv[1:]]))
