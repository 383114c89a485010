"""Exactly once, a function for each table and kind: orders for the warehouse.

python docs/examples/routes.py localhost:9092 'shop.*' postgresql:///app
"""

import logging
import sys
from dataclasses import dataclass

import psycopg

from consumer import IdempotentConsumer, Kind, Op, Transaction


@dataclass
class Order:
    """Columns by name, with the types that the annotations say."""

    id: int
    customer: str


def main() -> None:
    kafka, topics, dsn = sys.argv[1:]
    logging.basicConfig(level="INFO")  # says what is read
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS parcel (id int PRIMARY KEY, receiver text);"
            "CREATE TABLE IF NOT EXISTS other_change (relation text, kind text)"
        )
    consumer = IdempotentConsumer(
        dsn=dsn, group="warehouse", topics=topics, kafka={"bootstrap.servers": kafka}
    )

    @consumer.on("*.orders", Kind.INSERT, Kind.UPDATE, into=Order)
    def pack(tx: Transaction, order: Order, _: Op) -> None:
        tx.execute(
            "INSERT INTO parcel VALUES (%s, %s)"
            " ON CONFLICT (id) DO UPDATE SET receiver = EXCLUDED.receiver",
            (order.id, order.customer),
        )

    @consumer.on("*.orders", Kind.DELETE)
    def unpack(tx: Transaction, op: Op) -> None:
        tx.execute("DELETE FROM parcel WHERE id = %s", (op.old.get("id", int),))

    @consumer.on("*")  # the last one: what no route before was for
    def note(tx: Transaction, op: Op) -> None:
        tx.execute(
            "INSERT INTO other_change VALUES (%s, %s)",
            (op.table.full_name, op.kind.value),
        )

    consumer.run()  # until SIGTERM or Ctrl-C


if __name__ == "__main__":
    main()
