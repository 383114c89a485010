"""How long after its INSERT a row is received: the loop, and the reader."""

import json
import secrets
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer

from bench.watch import Topic
from walstream.formats.op import decode

TABLE: Final = "CREATE TABLE t (id int PRIMARY KEY, at float8, v text)"
_LONGEST_S: Final = 180.0


@dataclass
class Receiver:
    """Reads one topic in a thread; keeps names and latencies."""

    bootstrap: str
    topic: str
    seconds: dict[str, float] = field(default_factory=dict)  # by key, of the first
    over: threading.Event = field(default_factory=threading.Event)

    def has(self, rows: int) -> bool:
        return len(self.seconds) == rows

    def run(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "bench",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 10,
            }
        )
        consumer.subscribe([self.topic])
        while not self.over.is_set():
            message = consumer.poll(0.2)
            now = time.time()
            if message is None or message.error() or message.value() is None:
                continue
            row = decode(message.value() or b"").new or ()
            self.seconds.setdefault(str(row[0]), now - float(str(row[1])))
        consumer.close()


@contextmanager
def receiving(bootstrap: str, name: str) -> Iterator[Receiver]:
    """Create a topic, and receive what it gets."""
    receiver = Receiver(bootstrap, Topic(bootstrap, 2, name).name)
    thread = threading.Thread(target=receiver.run)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.over.set()
        thread.join()


def short(_number: int) -> str:
    """Give a text; what a broker measures is compressed."""
    return secrets.token_hex(10)


def write(
    database: Any, rate: float, numbers: range, text: Callable[[int], str] = short
) -> None:
    """Write a row a transaction at the rate; refuse a run that fell behind it."""
    began = time.monotonic()
    query = "INSERT INTO t VALUES (%s, %s, %s)"
    for index, number in enumerate(numbers):
        due = began + index / rate
        if (early := due - time.monotonic()) > 0:
            time.sleep(early)
        database.execute(query, (number, time.time(), text(number)))
    if (late := time.monotonic() - began - len(numbers) / rate) > 1:
        raise SystemExit(f"the writer fell {late:.1f} s behind: void")


def wait(done: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + _LONGEST_S
    while not done():
        if time.monotonic() > deadline:
            raise SystemExit(f"not in {_LONGEST_S} s: {what}")
        time.sleep(0.05)


def p99(seconds: list[float]) -> float:
    return statistics.quantiles(seconds, n=100)[98]


def save(name: str, document: Mapping[str, Any]) -> Path:
    """Keep what was measured under bench/results."""
    path = Path(__file__).with_name("results") / time.strftime(
        f"{name}-%Y%m%dT%H%M%S.json"
    )
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(document, indent=2))
    return path
