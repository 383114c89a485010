"""A producer of a simulated Kafka that writes in transactions."""

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, Final, cast

from confluent_kafka import KafkaError, KafkaException

from tests.simulation.kafka import Pending, SimCluster, SimProducer
from tests.simulation.kafka_admin import metadata

_NO_ANSWER: Final = KafkaError._TIMED_OUT
_NOT_DELIVERED: Final = KafkaError._STATE


class SimTransactionalProducer(SimProducer):
    """One life of a transactional id."""

    def __init__(
        self, cluster: SimCluster, properties: Mapping[str, object], **named: object
    ) -> None:
        super().__init__(cluster, properties, **named)
        self._log = cluster.transactions
        self._id = str(properties["transactional.id"])
        self._lasts_s = cast("int", properties["transaction.timeout.ms"]) / 1000
        self._epoch = -1
        self._asked: dict[str, list[object]] = {}  # answers that may still come
        self._failed = False  # of this transaction

    def init_transactions(self, timeout: float = 60.0) -> None:
        self._epoch = cast(
            "int",
            self._ask("init", timeout, lambda: self._log.begin(self._id, self.owner)),
        )

    def begin_transaction(self) -> None:
        self._world.port("begin transaction")
        if self.fatal is not None:
            raise KafkaException(self.fatal)
        self._failed = False

    def commit_transaction(self, timeout: float = 60.0) -> None:
        before = self._world.now
        if not self._world.wait(self._all_over, timeout):
            raise KafkaException(KafkaError(_NO_ANSWER, "no answer", retriable=True))
        if self.fatal is not None:
            raise KafkaException(self.fatal)
        if self._failed:
            error = KafkaError(_NOT_DELIVERED, "failed", txn_requires_abort=True)
            raise KafkaException(error)
        left = max(0.0, timeout - (self._world.now - before))
        self._ask("commit", left, lambda: self._ended(commits=True))

    def abort_transaction(self, timeout: float = 60.0) -> None:
        self._ask("abort", timeout, lambda: self._ended(commits=False))

    def _ended(self, *, commits: bool) -> object:
        return self._log.end(self._id, self._epoch, commits=commits, by=self.owner)

    def _all_over(self) -> bool:
        return self.fatal is not None or not any(self._queues.values())

    def _ask(self, doing: str, timeout: float, effect: Callable[[], object]) -> object:
        """Ask the coordinator; it may do so though its answer comes too late."""
        world, owner = self._world, self.owner
        world.port(f"{doing} transaction")
        if self.fatal is not None:
            raise KafkaException(self.fatal)
        answers = self._asked.get(doing)
        if answers is None:
            answers = self._asked[doing] = []

            def arrive() -> None:
                if owner is not None and owner.dead and world.random.random() < 0.5:
                    return  # it was not on the wire yet
                answer = None if self._cluster.away else effect()
                if answer is None:
                    world.at(self._cluster.delay("", 0), arrive)
                else:
                    world.at(self._cluster.delay("", 0), lambda: answers.append(answer))

            world.at(self._cluster.delay("", 0), arrive)
        if not world.wait(lambda: bool(answers), timeout):
            raise KafkaException(KafkaError(_NO_ANSWER, "no answer", retriable=True))
        del self._asked[doing]
        if isinstance(answers[0], KafkaError):
            self._be_fenced(answers[0])
            raise KafkaException(answers[0])
        return answers[0]

    def _be_fenced(self, error: KafkaError) -> None:
        self.fail(error.code())

    def _request(self, place: tuple[str, int]) -> None:
        if not self._queues[place]:
            super()._request(place)
            return
        added = self._log.add(self._id, self._epoch, place, self._lasts_s)
        if added is None:
            delay = self._cluster.delay(*place)
            self._world.at(delay, lambda: self._request(place), self.owner)
        elif isinstance(added, KafkaError):
            self._answer(place, [*self._queues[place]], added)
            self._be_fenced(added)
        else:
            super()._request(place)

    def _refused(
        self, place: tuple[str, int], batch: list[Pending]
    ) -> KafkaError | None:
        if batch and not self._log.takes(self._id, self._epoch, place):
            return KafkaError(KafkaError.INVALID_TXN_STATE, "it is over")
        return super()._refused(place, batch)

    def _store(self, batch: list[Pending]) -> None:
        for pending in batch:
            record = pending.record
            place = record.topic, record.partition
            if not pending.appended and self._log.takes(self._id, self._epoch, place):
                pending.appended = True
                self._known.add(place)
                pending.offset = self._log.append(self._id, record)

    def _report(self, pending: Pending, error: KafkaError | None) -> None:
        self._failed = self._failed or error is not None
        super()._report(pending, error)

    def list_topics(self, topic: str = "", timeout: float = 1.0) -> Any:
        world = self._world
        world.port("ask Kafka")
        delay = self._cluster.delay("", 0)
        world.wait(lambda: False, min(delay, timeout))
        if delay > timeout:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT, "no answer"))
        return metadata(self._cluster) if topic else SimpleNamespace(topics={})
