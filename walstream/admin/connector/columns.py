"""Columns that are left out or hidden, and columns that make a record's key."""

import re
from typing import Final

from walstream.admin.connector.draft import Draft
from walstream.admin.connector.name_pattern import (
    Inexact,
    column_of,
    is_literal,
    patterns,
    split,
)
from walstream.admin.connector.references import References
from walstream.admin.connector.tables import own_publication
from walstream.telemetry.runtime import token_hex

_CHARACTERS: Final = re.compile(r"column\.mask\.with\.([0-9]+)\.chars")
_HASH: Final = re.compile(r"column\.mask\.hash\..+\.with\.salt\..+")
_TRUNCATE: Final = re.compile(r"column\.truncate\.to\.([0-9]+)\.chars")
_SECRET_BYTES: Final = 32


def translate(draft: Draft, references: References) -> None:
    """Write handlers, and keys of topics."""
    if draft.get("column.include.list"):
        _only(draft, "column.include.list")
        if draft.has("column.exclude.list"):
            draft.inert("column.exclude.list", "column.include.list alone counts")
    elif draft.get("column.exclude.list"):
        _dropped(draft)
    for key in draft.file.entries:
        if found := _CHARACTERS.fullmatch(key):
            hidden = {"text": "*" * int(found[1])}
            _masked(draft, key, hidden, "a NULL stays NULL, where Debezium writes *")
        elif _HASH.fullmatch(key):
            secret = {"secret": _new_secret(references)}
            _masked(draft, key, secret, "another hash (HMAC-SHA256 with a new secret)")
        elif _TRUNCATE.fullmatch(key):
            draft.decide(key, "values stay whole: a custom handler can cut them")
    if draft.get("message.key.columns"):
        _keys(draft)


def _columns(draft: Draft, key: str) -> dict[str, list[str]]:
    """Return columns by a pattern of tables; raises Inexact."""
    found: dict[str, list[str]] = {}
    for expression in split(draft.get(key)):
        try:
            for pattern in patterns(expression, dots=2):
                tables, column = column_of(pattern)
                found.setdefault(tables, []).append(column)
        except Inexact as error:
            raise Inexact(f"{expression!r} cannot be translated: {error}") from None
    return found


def _dropped(draft: Draft) -> None:
    key = "column.exclude.list"
    try:
        found = _columns(draft, key)
    except Inexact as error:
        _withhold(draft, key, f"{error}: write a handler drop_columns")
        return
    for tables, columns in found.items():
        draft.handlers.append(
            {"kind": "drop_columns", "tables": [tables], "columns": columns}
        )
    shown = (f"{', '.join(columns)} of {tables}" for tables, columns in found.items())
    draft.became(key, f"handler drop_columns: {'; '.join(shown)}", "case counts here")


def _only(draft: Draft, key: str) -> None:
    """Report how a publication lists columns: a handler only leaves some out."""
    lists = "TABLE … (…), …"
    try:
        found = _columns(draft, key)
        if all(is_literal(table) for table in found):
            lists = "TABLE " + ", ".join(
                f"{table} ({', '.join(columns)})" for table, columns in found.items()
            )
    except Inexact:
        pass
    statement = f'CREATE PUBLICATION "{own_publication(draft)}" FOR {lists};'
    _withhold(draft, key, "make a publication that lists columns", statement)


def _withhold(draft: Draft, key: str, what: str, sql: str = "") -> None:
    """Name a publication that is not there: what is hidden now stays so."""
    draft.tables["source"]["publication"] = own_publication(draft)
    draft.decide(
        key,
        f"{what}; until then the file names the publication "
        f'"{own_publication(draft)}", which has to be made while Debezium runs',
        sql,
    )


def _masked(draft: Draft, key: str, hidden: dict[str, str], differs: str) -> None:
    try:
        found = _columns(draft, key)
    except Inexact as error:
        _withhold(draft, key, f"{error}: write a handler mask")
        return
    for tables, columns in found.items():
        draft.handlers.append(
            {"kind": "mask", "tables": [tables], "columns": columns, **hidden}
        )
    shown = "; ".join(f"{', '.join(names)} of {one}" for one, names in found.items())
    draft.decide(
        key,
        f"handler mask: {shown}, with {differs}; in schemas they are texts without "
        "the parameter masked",
    )


def _new_secret(references: References) -> str:
    path = references.output.absolute().with_suffix(".mask")
    if not path.exists():  # another would change the values that are written already
        references.files.setdefault(path, token_hex(_SECRET_BYTES))
    return f"${{file:{path}}}"


def _keys(draft: Draft) -> None:
    key = "message.key.columns"
    for part in draft.get(key).split(";"):
        expression, colon, written = part.strip().partition(":")
        if not expression:
            continue
        columns = [name.strip() for name in written.split(",") if name.strip()]
        try:
            if not colon or not columns:
                raise Inexact("it names no columns")
            for table in patterns(expression, dots=1):
                if not is_literal(table):
                    raise Inexact(f"{table} may be several tables: name each")
                draft.partition_keys[table] = columns
        except Inexact as error:
            draft.decide(
                key,
                f"{part.strip()!r} cannot be translated: {error}; write partition_key "
                "in [sinks.kafka.topics.TABLE], else rows get other keys",
            )
            continue
        shown = f"partition_key = {columns} of {expression}"
        if len(columns) > 1:
            draft.decide(
                key,
                f"{shown}: the key has them in the order of the table; where Debezium "
                "has another, rows go to other partitions",
            )
        else:
            draft.became(key, shown)
