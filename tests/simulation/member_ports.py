"""The ports of the consumer library, taken over by a world while it runs."""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any, Final

import psycopg
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

from consumer import idempotent
from consumer.group import client_close, fetcher
from consumer.group.assigned_partition import Place
from consumer.mirror import application, shape_cache
from consumer.op import Op
from consumer.state import topic_guard
from tests.simulation import target_mirror, target_state
from tests.simulation.group import Coordinator, Log, SimConsumer
from tests.simulation.host import SimFuture
from tests.simulation.kafka_admin import SimAdmin
from tests.simulation.target import SimTarget, Tx
from tests.simulation.target_session import Rows, Statement, TargetSession, done
from tests.simulation.threads import SimThreading
from tests.simulation.world import Violation, World
from walstream.op import Kind

_APPLY: Final = "apply an op"
_LOW: Final = type(OffsetSpec.earliest())  # type: ignore[no-untyped-call]
Patch = tuple[Any, str, object]


@dataclass
class EndsAdmin(SimAdmin):
    """The client that asks where partitions begin and end."""

    log: Log | None = None

    def list_offsets(self, asked: Any, *, request_timeout: float) -> dict[Any, Any]:
        def offset(one: Any, spec: object) -> object:
            assert self.log is not None
            place = Place(one.topic, one.partition)
            low = isinstance(spec, _LOW)
            found = self.log.low.get(place, 0) if low else self.log.visible[place]
            return SimpleNamespace(offset=found)

        return {
            one: self._soon(partial(offset, one, spec), request_timeout)
            for one, spec in asked.items()
        }

    def list_topics(self, topic: str = "", timeout: float = 1.0) -> object:
        if not topic:
            return super().list_topics(topic, timeout)
        self.cluster.world.port("ask Kafka")
        parts = self.cluster.topics[topic].partitions
        return SimpleNamespace(topics={topic: SimpleNamespace(partitions=parts)})


class Effects:
    """An application: it keeps its tables, and counts what it is given."""

    def handle_message(self, tx: Any, op: Op, /) -> None:
        tx.execute(_APPLY, op)


def _apply(tx: Tx, op: Op) -> Rows:
    table = op.table.full_name
    truncates = op.kind is Kind.TRUNCATE
    part = -1 if truncates else op.record.partition
    name = op.record.topic, part, op.lsn, op.seq_id
    count = (tx.lock("effects", name) or 0) + 1
    tx.put("effects", name, count)
    if count > 1:
        tx.on_commit.append(lambda: _twice(name))
    if truncates:
        tx.empty(table)
        return done(1)
    source = op.old if op.kind is Kind.DELETE else op.new
    row = dict(source.items())
    key = (row["id"],)
    before = tx.lock(table, key) or {}
    kept = {one: before.get(one, "unsent") for one in source.absent}
    tx.put(table, key, None if op.kind is Kind.DELETE else row | kept)
    return done(1)


def _twice(name: tuple[Any, ...]) -> None:
    raise Violation(f"I11: {name} took effect twice")


def _statement_of(text: str) -> Statement:
    if text == _APPLY:
        return _apply
    found = target_state.STATEMENTS.get(text) or target_mirror.statement_of(text)
    if found is None:
        raise NotImplementedError(text)
    return found


@contextmanager
def taken_over(
    world: World,
    coordinator: Coordinator,
    target: SimTarget,
    joined: Callable[[SimConsumer], None],
) -> Iterator[None]:
    """Replace them in the consumer library, until the end of the block."""

    def connect(*_: object, **__: object) -> TargetSession:
        return TargetSession(target, _statement_of)

    def client(*_: object, **__: object) -> SimConsumer:
        assert world.owner is not None
        made = SimConsumer(coordinator, world.owner)
        joined(made)
        return made

    def admin(*_: object, **__: object) -> EndsAdmin:
        return EndsAdmin(coordinator.log.cluster, log=coordinator.log)

    patches: list[Patch] = [
        (psycopg, "connect", connect),
        (fetcher, "Consumer", client),
        (topic_guard, "AdminClient", admin),
        (client_close, "Future", lambda: SimFuture(world)),
        (idempotent, "make_tables", lambda _: target_state.TABLES),
        (shape_cache, "load", target_mirror.shape_of),
        (application, "refuse_cascades", lambda *_: None),
        (application, "warn", lambda *_: None),
    ]
    threads = SimThreading(world)
    patches += [
        (module, "threading", threads)
        for title, module in sys.modules.items()
        if title.startswith("consumer") and hasattr(module, "threading")
    ]
    before = [(place, name, getattr(place, name)) for place, name, _ in patches]
    log = logging.getLogger("consumer")
    level = log.level
    log.setLevel(logging.CRITICAL + 1)
    for place, name, fake in patches:
        setattr(place, name, fake)
    try:
        yield
    finally:
        log.setLevel(level)
        for place, name, found in before:
            setattr(place, name, found)
