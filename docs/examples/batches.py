"""Exactly once, many ops at once: append each change of orders to a log, by COPY.

python docs/examples/batches.py localhost:9092 public.orders postgresql:///app
"""

import logging
import sys
from collections.abc import Sequence
from decimal import Decimal

import psycopg

from consumer import IdempotentConsumer, Kind, Op, Transaction


class OrderLog:
    """A batch and the position of its last op commit together."""

    def handle_batch(self, tx: Transaction, ops: Sequence[Op]) -> None:
        with tx.cursor().copy("COPY order_log (kind, id, amount) FROM STDIN") as rows:
            for op in ops:
                if op.kind is Kind.TRUNCATE:  # a batch of its own
                    rows.write_row(("Truncate", None, None))
                    continue
                row = op.old if op.kind is Kind.DELETE else op.new
                amount = row.get("amount", Decimal, default=None)
                rows.write_row((op.kind.value, row.get("id", int), amount))


def main() -> None:
    kafka, topic, dsn = sys.argv[1:]
    logging.basicConfig(level="INFO")  # says what is read
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS order_log (kind text, id int, amount numeric)"
        )
    consumer = IdempotentConsumer(
        OrderLog(),
        dsn,
        group="order-log",
        topics=topic,
        kafka={"bootstrap.servers": kafka},
        batch=500,
    )
    consumer.run()  # until SIGTERM or Ctrl-C


if __name__ == "__main__":
    main()
