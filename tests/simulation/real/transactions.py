"""One seed's acts of transactional producers, on a simulated and a real Kafka."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException

from tests.simulation.real.brokers import PARTITIONS, TAKES, Brokers, Log
from tests.simulation.real.pair import ComparedPair
from tests.support.deadline import within

_KINDS: Final = {
    "commit": 6,
    "abort": 2,
    "part": 3,
    "succession": 3,
    "outage": 1,
    "late answer": 1,
    "expiry": 1,
}
_IDS: Final = ("one", "two")
_BRIEF: Final = "brief"  # the id of transactions that soon are too old
_TIMEOUT_MS: Final = 60_000
_BRIEF_MS: Final = 2000
_MOST: Final = 3  # records of an act
_POLL_S: Final = 0.05
_POLLS: Final = 600
_ANSWER_S: Final = 30.0
_NO_ANSWER_S: Final = 0.3
_MARKED_S: Final = 20.0


def drawn(seed: int) -> list[tuple[str, int]]:
    """Draw the acts of one seed."""
    draw = random.Random(seed)  # noqa: S311 - repeatable on purpose
    kinds = draw.choices(list(_KINDS), list(_KINDS.values()), k=draw.choice((5, 10)))
    return [(kind, draw.getrandbits(32)) for kind in kinds]


@dataclass
class Life:
    """One producer of a transactional id, until the next one takes over."""

    producer: Any
    heard: list[str]
    is_open: bool = False

    def write(self, records: list[tuple[str, int, str]]) -> None:
        """Put records into the transaction that is open, or begin one."""
        if not self.is_open:
            self.try_to("begin", self.producer.begin_transaction)
            self.is_open = True
        for topic, part, value in records:
            self.try_to(
                "produce",
                lambda t=topic, p=part, v=value: self.producer.produce(  # type: ignore[misc]
                    t, v.encode(), b"k", p, self._hear
                ),
            )

    def _hear(self, error: KafkaError | None, _message: object) -> None:
        self.heard.append("delivered" if error is None else "not delivered")

    def settle(self) -> None:
        """Hear of all that was sent."""
        for _ in range(_POLLS):
            if not len(self.producer):
                return
            self.try_to("poll", lambda: self.producer.poll(_POLL_S))
        self.heard.append("records are left")

    def end(self, *, commits: bool) -> None:
        """End what is open."""
        ask = self.producer.commit_transaction
        if not commits:
            ask = self.producer.abort_transaction
        self.try_to("commit" if commits else "abort", lambda: ask(_ANSWER_S))
        self.is_open = False

    def try_to(self, doing: str, act: Callable[[], object]) -> None:
        """Do something; hear why it cannot be."""
        try:
            act()
        except KafkaException as error:
            said = error.args[0]
            if doing == "poll":  # it tells of a fatal error whenever it likes
                return
            marks = [
                mark
                for mark, so in (
                    ("fatal", said.fatal()),
                    ("retriable", said.retriable()),
                    ("abort", said.txn_requires_abort()),
                )
                if so
            ]
            self.heard.append(" ".join([f"{doing}:", *marks]))


@dataclass
class Side:
    """One Kafka, its producers, and what they were told."""

    brokers: Brokers
    name: str
    heard: list[str] = field(default_factory=list)
    lives: dict[str, Life] = field(default_factory=dict)

    def life(self, id_: str) -> Life:
        """Return the producer that has an id."""
        return self.lives.get(id_) or self.begin(id_)

    def begin(self, id_: str) -> Life:
        """Have another one take an id over: what was open is aborted."""
        lasts_ms = _BRIEF_MS if id_ == _BRIEF else _TIMEOUT_MS
        producer = self.brokers.transactional(f"{self.name}-{id_}", lasts_ms)
        producer.init_transactions(_ANSWER_S)
        life = self.lives[id_] = Life(producer, self.heard)
        return life


@dataclass
class Transactions(ComparedPair[Side]):
    """The same acts on both; each ends with what readers of either kind have."""

    def __post_init__(self) -> None:
        self._topics = [f"{TAKES}.{self.name}.{at}" for at in range(2)]
        self._brief = f"{TAKES}.{self.name}.brief"
        for topic in (*self._topics, self._brief):
            self._both(lambda side, topic=topic: side.brokers.create(topic))  # type: ignore[misc]

    def _compare(self) -> None:
        self._same("told", *(sorted(side.heard) for side in (self.model, self.truth)))
        self.model.brokers.pause(1.0)  # markers come after the answer, on both
        for topic in (*self._topics, self._brief):
            model = self.model.brokers.log(topic)
            self._same(topic, model, self._truly(topic, model))

    def _truly(self, topic: str, expected: Log) -> Log:
        """Read a real topic until it is as it is to be; not for long."""
        found = self.truth.brokers.log(topic)

        def same() -> bool:
            nonlocal found
            found = self.truth.brokers.log(topic)
            return found == expected

        if found != expected:
            within(same, _MARKED_S)
        return found

    def _records(self, draw: random.Random) -> list[tuple[str, int, str]]:
        records = []
        for _ in range(draw.randint(1, _MOST)):
            self._sent += 1
            place = draw.choice(self._topics), draw.randrange(PARTITIONS)
            records.append((*place, f"{self._sent}"))
        return records

    # acts

    def _commit(self, draw: random.Random) -> None:
        """Write, and end what is open."""
        self._ended(draw, commits=True)

    def _abort(self, draw: random.Random) -> None:
        self._ended(draw, commits=False)

    def _ended(self, draw: random.Random, *, commits: bool) -> None:
        id_, records = draw.choice(_IDS), self._records(draw)

        def act(side: Side) -> None:
            life = side.life(id_)
            life.write(records)
            life.settle()
            life.end(commits=commits)

        self._both(act)

    def _part(self, draw: random.Random) -> None:
        """Leave it open: who reads what is committed waits for its end."""
        id_, records = draw.choice(_IDS), self._records(draw)

        def act(side: Side) -> None:
            life = side.life(id_)
            life.write(records)
            life.settle()

        self._both(act)

    def _succession(self, draw: random.Random) -> None:
        """Have another one take over, and the one before write on: it is late."""
        id_, records = draw.choice(_IDS), self._records(draw)
        behind, writes = self._records(draw), draw.random() < 0.7
        commits = draw.random() < 0.8

        def act(side: Side) -> None:
            before = side.life(id_)
            if writes:
                before.write(records)
                before.settle()
            after = side.begin(id_)
            before.write(behind)
            before.settle()
            before.end(commits=commits)
            after.write(behind)
            after.settle()
            after.end(commits=True)

        self._both(act)

    def _outage(self, draw: random.Random) -> None:
        """Write while nothing arrives, and commit when brokers are back."""
        id_, records = draw.choice(_IDS), self._records(draw)

        def act(side: Side) -> None:
            life = side.life(id_)
            side.brokers.go_away()
            life.write(records)
            side.brokers.pause(0.1)
            side.brokers.come_back()
            life.settle()
            life.end(commits=True)

        self._both(act)

    def _late_answer(self, draw: random.Random) -> None:
        """Ask for a commit whose answer does not come, and again."""
        id_, records = draw.choice(_IDS), self._records(draw)

        def act(side: Side) -> None:
            life = side.life(id_)
            life.write(records)
            life.settle()
            side.brokers.go_away()
            commit = life.producer.commit_transaction
            life.try_to("commit", lambda: commit(_NO_ANSWER_S))
            side.brokers.come_back()
            life.end(commits=True)

        self._both(act)

    def _expiry(self, draw: random.Random) -> None:
        """Let a transaction be open for too long: the broker aborts it."""
        places = [(part, value) for _, part, value in self._records(draw)]
        records = [(self._brief, part, value) for part, value in places]

        def act(side: Side) -> None:
            life = side.begin(_BRIEF)
            life.write(records)
            life.settle()
            side.brokers.let_expire(self._brief)
            life.end(commits=True)
            side.begin(_BRIEF)

        self._both(act)
