"""`python -m bench.receiver`: when each record of a topic is received, in one process.

Alone, so that nothing else of a benchmark delays it. Ends when it has so many records,
or when none comes for a while; then it prints a line of JSON: of every record its key's
number, when its row was written, and when it was received.
"""

import argparse
import json
import time
from typing import Any, Final

import orjson
from confluent_kafka import Consumer, TopicPartition

_PATIENCE_S: Final = 60.0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.receiver")
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--partitions", type=int, required=True)
    parser.add_argument("--rows", type=int, required=True)
    wanted = parser.parse_args()
    consumer = Consumer(
        {
            "bootstrap.servers": wanted.bootstrap,
            "group.id": "receiver",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 100,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.assign(
        [TopicPartition(wanted.topic, one, 0) for one in range(wanted.partitions)]
    )
    print("ready", flush=True)
    received: list[tuple[bytes, float]] = []
    heard = time.monotonic()
    while len(received) < wanted.rows:
        message = consumer.poll(1.0)
        if message is None:
            if time.monotonic() - heard > _PATIENCE_S:
                break
            continue
        now = time.time()
        if message.error():
            continue
        received.append((message.value() or b"", now))
        heard = time.monotonic()
    consumer.close()
    print(json.dumps([(*row(value), at) for value, at in received]), flush=True)


def row(value: bytes) -> tuple[int, float]:
    """Read the number and the time of a row from walstream's record or Debezium's."""
    found: dict[str, Any] = orjson.loads(value)
    if "op" in found:
        texts = found["op"]["Insert"]
        return int(texts[0]), float(texts[2])
    return found["id"], found["at"]


if __name__ == "__main__":
    main()
