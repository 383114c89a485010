"""librdkafka's idempotent producer spins between two answers: walstream works round it.

Both producers get the same records in the same seconds and are flushed alike, so what
else the machine does meets both. A thread of librdkafka counts how often it looks for
work: about 200 times as often where its producer is idempotent, busy machine or not.
"""

import json
import time
from collections.abc import Callable, Iterable

from confluent_kafka import Producer

from tests.support.servers.mock_kafka import PARTITIONS, Mocked

TOPIC = "spin"
RTT_MS = 20
RATE = 1000  # records a second; some 5 of a partition are under way at any time
SECONDS = 3.0
WARM_S = 1.0
MARGIN = 10  # librdkafka 2.16: 180 to 350

GONE = (
    "librdkafka's idempotent producer no longer spins while answers are on their way:"
    " docs/decisions/0116-flushes-wait-for-answers.md can be reconsidered"
    " (linger.ms of 50 ms, and FlushPolicy's wait for answers)"
)


class Counted:
    """A producer as walstream's was before decision 0116, and what its threads did."""

    def __init__(self, bootstrap: str, *, idempotent: bool) -> None:
        self.looks: list[int] = []  # for work, since the start, at each report
        self.client = Producer(
            {
                "bootstrap.servers": bootstrap,
                "log_level": 0,
                "acks": "all",
                "enable.idempotence": idempotent,
                "linger.ms": 10,
                "statistics.interval.ms": 200,
                "stats_cb": self._told,
            }
        )

    def _told(self, report: str) -> None:
        brokers = json.loads(report)["brokers"].values()
        self.looks.append(sum(one["wakeups"] for one in brokers))

    @property
    def looks_per_report(self) -> float:
        assert len(self.looks) > 2
        return (self.looks[-1] - self.looks[0]) / (len(self.looks) - 1)


def drive(producers: Iterable[Producer], seconds: float) -> None:
    """Write at the rate, and flush at each turn for a millisecond."""
    began, written = time.monotonic(), 0
    while (passed := time.monotonic() - began) < seconds:
        due = int(passed * RATE)
        for number in range(written, due):
            for one in producers:
                one.produce(TOPIC, b"v" * 300, b"k", number % PARTITIONS)
        written = due
        for one in producers:
            one.flush(0.001)


def until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not done():
        assert time.monotonic() < deadline


def test_the_idempotent_producer_spins_and_its_like_without_that_does_not() -> None:
    kafka = Mocked(rtt_ms=RTT_MS)
    kafka.write(TOPIC, 1)
    idempotent = Counted(kafka.bootstrap, idempotent=True)
    plain = Counted(kafka.bootstrap, idempotent=False)
    clients = (idempotent.client, plain.client)
    drive(clients, WARM_S)
    for one in (idempotent, plain):
        one.looks.clear()
    drive(clients, SECONDS)
    # walstream's cure is for this alone
    assert idempotent.looks_per_report > MARGIN * plain.looks_per_report, GONE
    until(lambda: not any(one.flush(0.1) for one in clients))
