"""`python -m bench.bare`: what polling costs without walstream, in one process.

One SELECT by the driver that walstream uses, streamed; each row hashed and written by
`json`, and produced as walstream produces. Told over stdin, a line of JSON; prints the
seconds that it took.
"""

import json
import sys
import time
from datetime import datetime
from decimal import Decimal
from hashlib import sha256
from typing import Any, Final

import pymysql
from confluent_kafka import Message, Producer
from pymysql.cursors import SSCursor

_BLOCK: Final = 10_000


def main() -> None:
    told = json.loads(sys.stdin.readline())
    producer = Producer(told["producer"])
    delivered = 0

    def report(error: Any, _message: Message) -> None:
        nonlocal delivered
        if error is not None:
            raise SystemExit(str(error))
        delivered += 1

    began = time.perf_counter()
    connection = pymysql.connect(**told["server"], cursorclass=SSCursor)
    with connection, connection.cursor() as cursor:
        cursor.execute(told["query"])
        names = [column[0] for column in cursor.description or ()]
        sent = 0
        while rows := cursor.fetchmany(_BLOCK):
            for row in rows:
                value = record(names, row)
                while True:
                    try:
                        producer.produce(
                            told["topic"], value, b'["%d"]' % row[0], on_delivery=report
                        )
                    except BufferError:
                        producer.poll(0.1)
                    else:
                        break
            producer.poll(0)
            sent += len(rows)
    producer.flush()
    took = time.perf_counter() - began
    if delivered != sent:
        raise SystemExit(f"{delivered} of {sent} delivered")
    print(took)


def record(names: list[str], row: tuple[Any, ...]) -> bytes:
    """Write one row as walstream does, plainly."""
    data = dict(zip(names, map(plain, row), strict=True))
    digest = sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()
    whole = {
        "timestamp": time.time(),
        "name": "bench",
        "table": "backlog",
        "data": data,
        "hash": digest,
    }
    return json.dumps(whole, separators=(",", ":")).encode()


def plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else value


if __name__ == "__main__":
    main()
