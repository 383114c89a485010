"""Calls librdkafka.c in any order, with anything: `native_abuse FILE SEED SECONDS`.

It runs under sanitizers, which end it where memory is misused. Prints how many calls it
made, and how many were refused.
"""

import random
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final

from confluent_kafka import KafkaException

from tests.support.programs.native_module import load_native
from tests.support.servers.mock_kafka import PARTITIONS, Mocked

_REFUSED: Final = (
    *(TypeError, ValueError, OverflowError, BufferError, KafkaException),
    *(RuntimeError, AttributeError, IndexError),
)
_TINY: Final = {"queue.buffering.max.messages": "50", "linger.ms": "1"}


class Abuse:
    """A producer, and what is done to it."""

    def __init__(self, module: Any, servers: str, seed: int) -> None:
        self._module = module
        self._servers = servers
        self._choose = random.Random(seed)  # noqa: S311 - a test's choices
        self.calls = self.refused = self.delivered = self.failed = 0
        self._counts: list[Any] = []
        self._producer = self._made()

    def _made(self) -> Any:
        properties = {"bootstrap.servers": self._servers, "log_level": "7"}
        if self._choose.random() < 0.5:
            properties |= _TINY
        if self._choose.random() < 0.3:
            properties["message.timeout.ms"] = "2"
        if self._choose.random() < 0.3:
            properties |= {"enable.idempotence": "true"}
        if self._choose.random() < 0.1:
            properties["nonsense"] = "1"
            try:
                self._module.Producer(properties)
            except KafkaException:
                self.refused += 1
            del properties["nonsense"]
        return self._module.Producer(properties)

    def step(self) -> None:
        """Do one thing."""
        self.calls += 1
        done = self._choose.choices(
            [self._produce, self._garbage, self._serve, self._take, self._end],
            [60, 10, 15, 15, 1],
        )[0]
        try:
            done()
        except _REFUSED:
            self.refused += 1

    def _count(self) -> Any:
        if not self._counts or self._choose.random() < 0.2:
            self._counts = [*self._counts[-5:], self._module.Count(object())]
        return self._choose.choice(self._counts)

    def _produce(self) -> None:
        choose = self._choose
        count = self._count() if choose.random() < 0.8 else lambda *_: None
        if choose.random() < 0.1:
            self._producer.produce("t", b"v", b"k", 0, count)
            return
        size = choose.choice([0, 1, 100, 3000])
        self._producer.produce(
            "t" * choose.choice([1, 1, 1, 2]),
            choose.choice([None, b"v" * size]),
            choose.choice([None, b"", b"k"]),
            choose.choice([-1, 0, PARTITIONS - 1, PARTITIONS + 7]),
            count,
            None,
            choose.choice([0, 1795787098651]),
            choose.choice([None, [], [("h", b"v"), ("i", None), ("j", "text")]]),
        )

    def _garbage(self) -> None:
        some: list[Any] = [
            *(None, b"", "", "\ud800", "t\0t", -1, 1 << 70, 1.5, object()),
            *([], [1], [("h",)], [(1, 2)], [("h", 5)], [("\ud800", b"")], ()),
            self._module.Count(1),
        ]
        some.append(some)
        given = [
            self._choose.choice(some)
            for _ in range(self._choose.choice([4, 5, 7, 8, 8]))
        ]
        method = self._choose.choice(["produce", "produce", "list_topics", "poll"])
        if method == "produce":
            given[0] = self._choose.choice(["t", given[0]])
            self._producer.produce(*given)
        elif method == "poll":
            self._producer.poll(self._choose.choice([*some[:3], float("nan"), -5.0]))
        else:
            self._producer.list_topics(given[0], 0.001)

    def _serve(self) -> None:
        producer, choose = self._producer, self._choose
        served = choose.choice([producer.poll, producer.poll, producer.flush])
        wait_s = choose.choice([0.0, 0.0, 0.003])
        if choose.random() < 0.05:  # by two at once: one is refused
            other = threading.Thread(target=self._beside, args=(producer,))
            other.start()
            try:
                served(wait_s)
            finally:
                other.join()
        else:
            served(wait_s)

    def _beside(self, producer: Any) -> None:
        try:
            producer.poll(0.003)
            producer.take()
        except RuntimeError:
            self.refused += 1

    def _take(self) -> None:
        told = self._producer.take()
        if told is not None:
            _, delivered, failures, _ = told
            self.delivered += sum(number for _, number in delivered)
            self.failed += len(failures)

    def _end(self) -> None:
        """Leave it in whatever state it is, for another."""
        if self._choose.random() < 0.5:
            self._producer.purge()
        if self._choose.random() < 0.5:
            self._producer.close()
        if self._choose.random() < 0.2:
            self._counts = []
        self._producer = self._made()


def main() -> None:
    made, seed, seconds = sys.argv[1:]
    kafka = Mocked()
    kafka.write("t", 1)
    abuse = Abuse(load_native(Path(made)), kafka.bootstrap, int(seed))
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end:
        abuse.step()
    sys.stdout.write(
        f"{abuse.calls} calls, {abuse.refused} refused, {abuse.delivered} delivered,"
        f" {abuse.failed} failed\n"
    )


if __name__ == "__main__":
    main()
