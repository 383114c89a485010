"""A consumer of documents that needs whole rows, in a process of its own.

python -m tests.support.programs.whole_rows ORDER

ORDER is JSON: {"dsn": …, "kafka": {…}, "group": …, "topics": …, "transactions": …}
"""

import json
import sys
from dataclasses import dataclass
from typing import Any, Final

from consumer import (
    Fatal,
    IdempotentConsumer,
    Kind,
    Op,
    Transaction,
    TransactionConsumer,
    WholeTransaction,
)
from consumer.handler import IdempotentHandler

KEYS: Final = {"public.docs": "id"}
SOURCE: Final = """
    CREATE TABLE docs (id int PRIMARY KEY, n int, version int, body text);
    ALTER TABLE docs ALTER body SET STORAGE EXTERNAL;
"""
TARGET: Final = """
    CREATE TABLE copy (id int PRIMARY KEY, n int, version int, body text);
    CREATE TABLE seen (lsn numeric, seq_id numeric, filled int,
      PRIMARY KEY (lsn, seq_id));
"""


@dataclass
class Doc:
    """A row; its version is written with its body, and the body begins with it."""

    id: int
    n: int
    version: int
    body: str


def handle(tx: Transaction, op: Op) -> None:
    """Write the whole row; fail where a value is unknown, or of another moment."""
    if op.kind is Kind.TRUNCATE:
        tx.execute("DELETE FROM copy")
        return
    if op.kind is Kind.DELETE:
        tx.execute("DELETE FROM copy WHERE id = %s", (op.old["id"],))
        return
    doc = op.new.into(Doc)
    if not doc.body.startswith(f"{doc.version}-"):
        raise Fatal(f"{op!r} has version {doc.version}, and another one's body")
    tx.execute(
        "INSERT INTO copy VALUES (%s, %s, %s, %s) ON CONFLICT (id) DO UPDATE"
        " SET n = EXCLUDED.n, version = EXCLUDED.version, body = EXCLUDED.body",
        (doc.id, doc.n, doc.version, doc.body),
    )
    if not op.snapshot:
        tx.execute(
            "INSERT INTO seen VALUES (%s, %s, %s)",
            (op.lsn, op.seq_id, len(op.new.filled)),
        )


def handle_whole(tx: Transaction, whole: WholeTransaction) -> None:
    """Handle each op; what was looked at before is the same again."""
    rows = [dict(op.new.items()) for op in whole.ops]
    for op, row in zip(whole.ops, rows, strict=True):
        if dict(op.new.items()) != row:
            raise Fatal(f"{op!r} is another one when it is looked at again")
        handle(tx, op)


def consumer(
    given: dict[str, Any], handler: IdempotentHandler = handle, **options: Any
) -> IdempotentConsumer | TransactionConsumer:
    options = {"whole_rows": KEYS, **options}
    where = {"group": given["group"], "topics": given["topics"]}
    told = given.get("transactions")
    if told is not None:
        return TransactionConsumer(
            handle_whole,
            given["dsn"],
            transactions=told,
            kafka=given["kafka"],
            memory=1,
            **where,
            **options,
        )
    return IdempotentConsumer(
        handler, given["dsn"], kafka=given["kafka"], **where, **options
    )


if __name__ == "__main__":
    consumer(json.loads(sys.argv[1])).run()
