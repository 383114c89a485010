"""The ports of walstream, taken over by a simulation while it runs."""

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import confluent_kafka
import structlog
from confluent_kafka.admin import AdminClient

from consumer.state import advisory_lock
from tests.simulation.answers import Created
from tests.simulation.backfill import (
    SimDriver,
    SimHolder,
    SimImport,
    orphans_ended,
    planned,
    published,
    snapshot_of,
)
from tests.simulation.disk import SimDisk, SimEnvironment, SimLock
from tests.simulation.kafka import SimCluster, SimProducer
from tests.simulation.kafka_admin import SimAdmin
from tests.simulation.kafka_reader import SimTopicReader
from tests.simulation.kafka_transactional import SimTransactionalProducer
from tests.simulation.kafka_transactions import POSITIONS
from tests.simulation.polling import open_now
from tests.simulation.reader import SimReader
from tests.simulation.server import SimServer
from walstream.config import Config, load
from walstream.errors import Transient
from walstream.kafka import (
    admin_client,
    native_producer,
    ordered_producer,
    topic_reader,
)
from walstream.pipeline.shutdown import Stop
from walstream.postgres import (
    catalog,
    companion,
    connection,
    preflight,
    session_reuse,
    snapshot_holder,
    toast,
)
from walstream.postgres import server as servers
from walstream.postgres import slot as slots
from walstream.service import worker as _worker  # noqa: F401 - loaded: it is patched
from walstream.sources.postgres import detached_runner as _detached  # noqa: F401 - likewise
from walstream.sources.postgres import runner as _runner  # noqa: F401 - likewise
from walstream.sources.postgres.backfill import (
    plan,
    prerequisites,
    publication_filter,
    reader,
)
from walstream.sources.postgres.backfill.chunk import Chunk
from walstream.sources.postgres.backfill.plan import BackfillPlan
from walstream.sources.postgres.incremental import keyset_reader
from walstream.sources.sql.database import open_transactions
from walstream.spark import leash
from walstream.spark.driver import client
from walstream.state import lmdb_environment, lock
from walstream.state import store as _store  # noqa: F401 - likewise

PARTITIONS: Final = {"a": 3, "b": 1}
_TOML: Final = """
state = "/nowhere/STATE"
[sources.app]
kind = "postgres"
dsn = "postgresql://localhost/app"
tables = ["public.*"]
backfill = "BACKFILL"
on_publication_change = "reread"
detach_after = "DETACH"
sinks = ["a", "b"]
[sinks.a]
kind = "kafka"
insecure = true
topic = "a.{schema}.{table}"
skip_delivered = SKIP
delivery = "DELIVERY"
positions_topic = "POSITIONS"
[sinks.a.producer]
"bootstrap.servers" = "localhost:9092"
[sinks.b]
kind = "kafka"
insecure = true
topic = "b.{schema}.{table}"
skip_delivered = SKIP
delivery = "DELIVERY"
positions_topic = "POSITIONS"
[sinks.b.producer]
"bootstrap.servers" = "localhost:9092"
"""


@cache
def configuration(
    backfill: str = "never",
    state: str = "state",
    detach_after: str = "3s",
    *,
    skip: bool = True,
    transactional: bool = False,
) -> Config:
    """Return that of a schedule: one source with two sinks."""
    given = {"BACKFILL": backfill, "STATE": state, "DETACH": detach_after}
    given["SKIP"] = str(skip).lower()
    given["DELIVERY"] = "transactional" if transactional else "idempotent"
    given["POSITIONS"] = POSITIONS
    text = _TOML
    for name, value in given.items():
        text = text.replace(name, value)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "walstream.toml"
        file.write_text(text, "utf-8")
        return load(file, {})


class Parts:
    """What stands at the ports now."""

    config: Config
    server: SimServer
    cluster: SimCluster
    disk: SimDisk


parts: Final = Parts()


def _no_preflight(*_: object, **__: object) -> None:
    pass


def _in_use(*_: object, **__: object) -> Transient:
    return Transient("the slot is in use")


def _of(part: str, name: str) -> Callable[..., Any]:
    def call(*given: Any, **named: Any) -> Any:
        return getattr(getattr(parts, part), name)(*given, **named)

    return call


def _no_native_producer(*_: object) -> None:
    """Stand for a wheel without librdkafka.c."""


def _producer(properties: Any, **named: object) -> SimProducer:
    if "transactional.id" in properties:
        made = parts.cluster.transactional_producer or SimTransactionalProducer
        return made(parts.cluster, properties, **named)
    return parts.cluster.producer(parts.cluster, properties, **named)


def _topic_reader(properties: Any = None, *_: object, **__: object) -> SimTopicReader:
    return SimTopicReader(parts.cluster, properties)


def _admin(*_: object, **__: object) -> SimAdmin:
    return SimAdmin(parts.cluster)


def _environment(folder: Path) -> SimEnvironment:
    return SimEnvironment(parts.disk, folder)


_lock_key: Final = cache(advisory_lock.lock_key)


def _holder(_dsn: str, created: Created, _slot: str) -> SimHolder:
    return SimHolder(parts.server, created)


def _driver(_where: str) -> SimDriver:
    return SimDriver(parts.server, parts.config)


@contextmanager
def _under_snapshot(_database: object, name: str) -> Iterator[SimImport]:
    parts.server.connect("")
    yield SimImport(parts.server, snapshot_of(parts.server, name))


def _blocks(connection: SimImport, chunk: Chunk) -> Iterator[bytes]:
    return connection.rows(chunk)


def _planned(_: object, *given: Any, **named: Any) -> BackfillPlan:
    return planned(parts.server, *given, **named)


def _published(_: object, names: list[str]) -> list[str]:
    return published(parts.server, names)


def _await_orphans(_lock: Path, stop: Stop) -> bool:
    return orphans_ended(parts.server, stop)


def _nothing(*_: object, **__: object) -> list[Any]:
    return []


def _lock(folder: Path) -> SimLock:
    return SimLock(parts.disk, folder)


def _reader(*_: object, **__: object) -> SimReader:
    return SimReader(parts.server)


def _sessions(dsn: str) -> SimpleNamespace:
    """Give sessions that nobody uses again: what they cost is not simulated."""

    def nothing() -> None:
        pass

    new = partial(_of("server", "session"), dsn)
    return SimpleNamespace(session=new, tick=nothing, close=nothing)


def replaced() -> list[tuple[object, object]]:
    """List what is replaced wherever a module of walstream has it."""
    return [
        (connection.session, _of("server", "session")),
        (session_reuse.SessionReuse, _sessions),
        (connection.readable, _of("server", "readable")),
        (connection.connect, _of("server", "connect")),
        (catalog.tables, _of("server", "facts")),
        (catalog.tables_and_end, _of("server", "facts_and_end")),
        (catalog.wait_until_visible, _no_preflight),
        (slots.find, _of("server", "find")),
        (slots.health, _of("server", "health")),
        (slots.create, _of("server", "create")),
        (servers.look, _of("server", "look")),
        (servers.check, _no_preflight),
        (preflight.check, _no_preflight),
        (preflight.in_use, _in_use),
        (toast.read, _of("server", "toasted")),
        (catalog.end_lsn, _of("server", "end_lsn")),
        (keyset_reader.KeysetReader, _reader),
        (confluent_kafka.Producer, _producer),
        (native_producer.native_producer, _no_native_producer),
        (admin_client.admin_client, _admin),
        (topic_reader.TopicReader, _topic_reader),
        (lmdb_environment.LmdbEnvironment, _environment),
        (lmdb_environment.discard, _of("disk", "discard")),
        (lock.FolderLock, _lock),
        (lock.holder, _of("disk", "holder")),
        (slots.drop, _of("server", "drop")),
        (slots.copy, _of("server", "copy")),
        (slots.take_over, _of("server", "take_over")),
        (advisory_lock.lock_key, _lock_key),
        (snapshot_holder.Holder, SimpleNamespace(of_new_slot=_holder)),
        (snapshot_holder.backfilling, lambda *_: 0),
        (client.Driver, _driver),
        (reader.under_snapshot, _under_snapshot),
        (reader.blocks, _blocks),
        (plan.plan, _planned),
        (publication_filter.published, _published),
        (publication_filter.let_through, _nothing),
        (prerequisites.of_first, _nothing),
        (prerequisites.of_rest, _nothing),
        (prerequisites.is_small, lambda *_: True),
        (leash.await_orphans, _await_orphans),
        (open_transactions.open_transactions, open_now),
    ]


# more often, so that they fall among what is written
_WATCHES: Final = {"_WATCH_EVERY_S": 2.0, "_EXTEND_EVERY": 2}


class _Mute:
    """A logger that says nothing, for nothing: structlog's binds itself to say that."""

    def _say(self, *_: object, **__: object) -> None:
        pass

    debug = info = warning = error = exception = log = _say


@contextmanager
def installed() -> Iterator[None]:
    """Replace them, in all modules that are loaded, until the end of the block."""
    before: list[tuple[Any, str, object]] = []
    fakes = {id(real): fake for real, fake in replaced()}
    mute = _Mute()
    logger = type(structlog.get_logger())
    for name, value in _WATCHES.items():
        before.append((companion, name, getattr(companion, name)))
        setattr(companion, name, value)
    for title, module in list(sys.modules.items()):
        if not title.startswith(("walstream", "consumer")):
            continue
        for name, found in list(vars(module).items()):
            fake = mute if type(found) is logger else fakes.get(id(found))
            if fake is not None:
                before.append((module, name, found))
                setattr(module, name, fake)
    try:
        yield
    finally:
        for module, name, found in before:
            setattr(module, name, found)


_ = AdminClient, ordered_producer
