"""Handle each row of a polled table once, although a poll may send it again.

The topic holds messages of the format `row`; any Kafka client reads them.

python docs/examples/row_dedupe.py localhost:9092 processes postgresql:///app
"""

import json
import sys

import psycopg
from confluent_kafka import Consumer

from consumer import RowMessage, SeenInPostgres, verify


def handle(connection: psycopg.Connection, message: RowMessage) -> None:
    connection.execute(
        "INSERT INTO processes VALUES (%s)", (json.dumps(dict(message.data)),)
    )


def main() -> None:
    kafka, topic, dsn = sys.argv[1:]
    settings = {
        "bootstrap.servers": kafka,
        "group.id": f"rows of {topic}",
        "auto.offset.reset": "earliest",
        "enable.auto.offset.store": False,
    }
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    with psycopg.connect(dsn) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS processes (data jsonb)")
        seen = SeenInPostgres(connection)
        connection.commit()
        while True:
            record = consumer.poll(1.0)
            if record is None or record.error() is not None:
                continue
            message = RowMessage.of(record.value() or b"")
            if not verify(message):
                raise SystemExit(f"damaged: {message!r}")
            with connection.transaction():  # the row and its mark, or neither
                if message not in seen:
                    handle(connection, message)
                    seen.add(message)
            consumer.store_offsets(message=record)


if __name__ == "__main__":
    main()
