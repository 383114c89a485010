"""Exactly once, with the long values that an UPDATE leaves out: documents by words.

python docs/examples/whole_rows.py localhost:9092 'shop.*' postgresql:///app
"""

import logging
import sys

import psycopg

from consumer import IdempotentConsumer, Kind, Op, Transaction

TABLE = "public.docs"


def main() -> None:
    kafka, topics, dsn = sys.argv[1:]
    logging.basicConfig(level="INFO")  # says what is read
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS found (id int PRIMARY KEY, words tsvector)"
        )
    consumer = IdempotentConsumer(
        dsn=dsn,
        group="search",
        topics=topics,
        kafka={"bootstrap.servers": kafka},
        whole_rows={TABLE: "id"},
    )

    @consumer.on(TABLE, Kind.INSERT, Kind.UPDATE)
    def index(tx: Transaction, op: Op) -> None:
        if op.new.absent:  # from before: walstream backfill public.docs
            print(f"unknown: {op!r}")
            return
        tx.execute(
            "INSERT INTO found VALUES (%s, to_tsvector('simple', %s || ' ' || %s))"
            " ON CONFLICT (id) DO UPDATE SET words = EXCLUDED.words",
            (op.new.get("id", int), op.new["title"], op.new["body"]),
        )

    @consumer.on(TABLE, Kind.DELETE)
    def forget(tx: Transaction, op: Op) -> None:
        tx.execute("DELETE FROM found WHERE id = %s", (op.old.get("id", int),))

    consumer.run()  # until SIGTERM or Ctrl-C


if __name__ == "__main__":
    main()
