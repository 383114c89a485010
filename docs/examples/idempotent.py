"""Exactly once: keep each customer's total in PostgreSQL, in step with the orders.

python docs/examples/idempotent.py localhost:9092 public.orders postgresql:///app
"""

import sys
from dataclasses import dataclass
from decimal import Decimal

import psycopg

from consumer import IdempotentConsumer, Kind, Op, Transaction

ADD = """
INSERT INTO totals VALUES (%s, %s)
ON CONFLICT (customer) DO UPDATE SET total = totals.total + EXCLUDED.total
"""


@dataclass
class Order:
    """Columns by name; the others of the table do not matter here."""

    id: int
    customer: str
    amount: Decimal


class Totals:
    """What it writes through `tx` commits together with the op's position."""

    def handle_message(self, tx: Transaction, op: Op) -> None:
        if op.kind is Kind.TRUNCATE:
            tx.execute("DELETE FROM totals")
            return
        if op.kind is not Kind.INSERT:  # an update takes the old amount away, too
            # the old row is whole: ALTER TABLE orders REPLICA IDENTITY FULL
            old = op.old.into(Order)
            tx.execute(ADD, (old.customer, -old.amount))
        if op.kind is not Kind.DELETE:
            new = op.new.into(Order)
            tx.execute(ADD, (new.customer, new.amount))


def main() -> None:
    kafka, topic, dsn = sys.argv[1:]
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS totals (customer text PRIMARY KEY,"
            " total numeric NOT NULL)"
        )
    consumer = IdempotentConsumer(
        Totals(),
        dsn,
        group="totals",
        topics=[topic],
        kafka={"bootstrap.servers": kafka},
    )
    consumer.run()  # until SIGTERM or Ctrl-C


if __name__ == "__main__":
    main()
