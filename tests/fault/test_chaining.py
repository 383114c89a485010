"""PostgreSQL to Kafka to Kafka: whatever is killed or away, nothing is lost."""

import os
import random
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.support.deadline import wait_until, within
from tests.support.fixtures.kafka import KafkaServer, OwnKafka
from tests.support.fixtures.postgres import PostgresServer
from tests.support.fixtures.walstream import Stream, streamed
from tests.support.loads.keyed import TABLE, Load
from tests.support.loads.op_record import Feed
from tests.support.oracles.op_order import Name, OracleSlot, assert_rewind_and_continue
from tests.support.oracles.topic_reader import Reader, Record, TopicAdmin
from tests.support.programs.relay import Chain
from tests.support.programs.verb import as_json
from tests.support.programs.walstream import Walstream

pytestmark = pytest.mark.fault
_SEED = int(os.environ.get("WALSTREAM_TEST_SEED") or time.time())
_KILLS_SHORT = 2
_KILLS_LONG = 40
# the least that a broker allows: how long a killed member keeps its partitions
_CONSUMER = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 1000}


@dataclass
class Chained:
    stream: Stream
    chain: Chain
    copied: Reader
    delivery: str


@pytest.fixture(params=["idempotent", "transactional"])
def chained(
    request: pytest.FixtureRequest,
    postgres18: PostgresServer,
    kafka: KafkaServer,
    tmp_path: Path,
) -> Iterator[Chained]:
    prefix = f"copied_{secrets.token_hex(6)}."
    with (
        streamed(
            postgres18,
            kafka,
            tmp_path / "extraction",
            before=TABLE,
            sink={"topic_partitions": 4, "delivery": request.param},
        ) as stream,
        Reader(kafka.bootstrap, prefix) as copied,
    ):
        chain = Chain(
            kafka.bootstrap,
            kafka.bootstrap,
            tmp_path / "delivery",
            prefix,
            topics=[f"{stream.walstream.prefix}public.load"],
            source={"consumer": _CONSUMER},
            sink={"delivery": request.param},
        )
        with chain:
            yield Chained(stream, chain, copied, request.param)


def test_sigkill_of_both_processes_loses_nothing(chained: Chained) -> None:
    kill_both(chained, _KILLS_SHORT)


@pytest.mark.fault_long
@pytest.mark.takes(600)
def test_forty_sigkills_of_both_processes_lose_nothing(chained: Chained) -> None:
    kill_both(chained, _KILLS_LONG)


def kill_both(chained: Chained, kills: int) -> None:
    print(f"seed {_SEED}")  # noqa: T201 - to replay a failure
    choose = random.Random(_SEED)  # noqa: S311 - a test's moments
    stream, chain = chained.stream, chained.chain
    oracle = OracleSlot(stream.database)
    with Load(stream.database.dsn, _SEED) as load:
        for number in range(kills):
            time.sleep(choose.uniform(0.2, 1.5))
            kill_and_start(stream.walstream if number % 2 else chain)
            load.wait_for_more(20)
            if number % 2:
                # what is passed on meanwhile is worth being killed in
                passed_on(chained)
    expected = oracle.names()
    assert len(expected) > 100
    stream.reader.until(holding(expected), 120, "the first topic is whole")
    chained.copied.until(holding(expected), 120, "the second topic is whole")
    assert stream.walstream.terminate() == 0
    assert chain.terminate() == 0, chain.text
    first, second = stream.reader.read(), chained.copied.read()
    assert {one.name for one in first} == {one.name for one in second}
    assert assert_rewind_and_continue(first) == 0
    repeats = assert_rewind_and_continue(second)
    assert not (repeats and chained.delivery == "transactional")
    assert {(one.partition, one.key, one.value) for one in first} == {
        (one.partition, one.key, one.value) for one in second
    }


def holding(expected: Iterable[Name]) -> Callable[[list[Record]], bool]:
    """Tell whether all these names came; each record is looked at once."""
    left, looked_at = set(expected), 0

    def holds(records: list[Record]) -> bool:
        nonlocal looked_at
        left.difference_update(one.name for one in records[looked_at:])
        looked_at = len(records)
        return not left

    return holds


def passed_on(chained: Chained) -> None:
    """Wait until the second topic grows."""
    copied = chained.copied
    before = copied.ends()
    grown = within(lambda: copied.ends() > before, 60)
    assert grown, f"nothing is passed on: {chained.chain.text}"


def kill_and_start(walstream: Walstream) -> None:
    """SIGKILL supervisor and worker, see them gone, start anew."""
    processes = [psutil.Process(pid) for pid in (walstream.pid, walstream.worker_pid())]
    walstream.kill()
    _, alive = psutil.wait_procs(processes, timeout=30)
    assert not alive
    walstream.start().streaming()


@pytest.mark.fault_long
def test_kafka_away_on_either_side_is_waited_for(
    own_kafka: OwnKafka, tmp_path: Path
) -> None:
    near, far = own_kafka(), own_kafka()
    TopicAdmin(near.bootstrap).create("up.t", 2)
    feed = Feed(near.bootstrap, "up.t")
    chain = Chain(
        near.bootstrap,
        far.bootstrap,
        tmp_path,
        "",
        topics=["up.t"],
        group="g",
        source={"consumer": _CONSUMER},
        top={"shutdown_timeout": "3s"},
    )

    def send(count: int) -> None:
        for number in range(count):
            feed.insert(number, number % 2)
        feed.flush()

    with chain, Reader(far.bootstrap, "copy.") as reader:
        send(10)
        reader.count(10)
        far.kill()
        send(1000)
        chain.until("Kafka does not take records")
        began = time.monotonic()
        assert chain.terminate() == 0, chain.text
        assert time.monotonic() - began < 15
        assert chain.said("the rest is sent again")
        chain.start().streaming()
        far.start()
        reader.until(lambda records: len({one.value for one in records}) == 1010)
        near.kill()
        chain.until("does not answer")
        assert chain.running
        near.start()
        chain.until("answers again", 60)
        send(10)
        reader.until(lambda records: len({one.value for one in records}) == 1020)
        # once, beside a start of the source that failed where the broker took long
        told = [one["event"] for one in chain.said("does not answer")]
        assert len([event for event in told if event != "trying again"]) == 1, told
        near.kill()
        chain_ends = time.monotonic()
        assert chain.terminate() == 0, chain.text
        assert time.monotonic() - chain_ends < 15
    assert_rewind_and_continue(reader.records)


@pytest.mark.parametrize("delivery", ["idempotent", "transactional"])
def test_a_thawed_member_sends_nothing_behind_who_got_its_partitions(
    delivery: str, kafka: KafkaServer, tmp_path: Path
) -> None:
    """Its producer lingers, so that all it was given is still here when it freezes."""
    prefix = f"thawed_{secrets.token_hex(6)}."
    topic = f"{prefix}up"
    TopicAdmin(kafka.bootstrap).create(topic, 1)
    feed = Feed(kafka.bootstrap, topic)

    def member(name: str, **sink: object) -> Chain:
        return Chain(
            kafka.bootstrap,
            kafka.bootstrap,
            tmp_path / name,
            prefix,
            topics=[topic],
            group=f"{prefix}group",
            source={"consumer": _CONSUMER},
            sink={"delivery": delivery, **sink},
        )

    lingering = {"bootstrap.servers": kafka.bootstrap, "linger.ms": "60000"}
    if delivery == "transactional":
        lingering["transaction.timeout.ms"] = "120000"
    first = member("first", producer=lingering, verbose=True)
    second = member("second")
    with (
        first,
        Reader(kafka.bootstrap, f"{prefix}copy.") as copied,
        ExitStack() as ends,
    ):
        first.until("partition assigned")
        for number in range(501):
            feed.insert(number, 0)
        feed.flush()
        if delivery == "idempotent":
            copied.count(1)  # the first one goes alone, since another waits behind it
        wait_until(lambda: len(first.said("record")) >= 501, 20, "all was given")
        frozen = [psutil.Process(first.pid), *psutil.Process(first.pid).children()]
        for process in frozen:
            process.suspend()
        wait_until(lambda: all(map(is_frozen, frozen)), 10, "it is frozen")
        assert len(copied.read()) <= 1, "it froze too late"

        ends.enter_context(second).until("partition assigned")
        copied.until(lambda found: len({*map(key, found)}) == 501, 60, "all come")
        for number in range(501, 520):
            feed.insert(number, 0)
        feed.flush()
        came = len(
            copied.until(lambda found: len({*map(key, found)}) == 520, 60, "more come")
        )

        for process in frozen:
            process.resume()
        first.until("begins again")
        wait_until(lambda: in_flight(first) == 0, 20, "nothing is under way")
        late = copied.read()[came:]
        print(f"{len(late)} records came late")  # noqa: T201 - how wide the window is
        assert not late
        assert len(copied.records) == 520 or delivery == "idempotent"


def test_relays_of_two_clusters_into_one_let_each_other_be(
    kafka: KafkaServer, own_kafka: OwnKafka, tmp_path: Path
) -> None:
    """All of their names are the same: two regions, say, that one configuration has."""
    prefix = f"regions_{secrets.token_hex(6)}."
    topic = f"{prefix}up"
    feeds, relays = [], []
    for name, near in {"a": kafka, "b": own_kafka()}.items():
        TopicAdmin(near.bootstrap).create(topic, 1)
        feeds.append(Feed(near.bootstrap, topic))
        relays.append(
            Chain(
                near.bootstrap,
                kafka.bootstrap,
                tmp_path / name,
                f"{prefix}{name}.",
                topics=[topic],
                group=f"{prefix}group",
                source={"consumer": _CONSUMER},
                sink={"delivery": "transactional"},
            )
        )
    with (
        relays[0],
        relays[1],
        Reader(kafka.bootstrap, f"{prefix}a.") as first,
        Reader(kafka.bootstrap, f"{prefix}b.") as second,
    ):
        for number in range(1, 21):
            for feed in feeds:
                feed.insert(number, 0)
                feed.flush()
            first.until(lambda found, n=number: len(found) >= n)  # type: ignore[misc]
            second.until(lambda found, n=number: len(found) >= n)  # type: ignore[misc]
        assert len(first.read()) == len(second.read()) == 20
        for relay in relays:
            assert not relay.said("trying again"), relay.text
            assert relay.terminate() == 0, relay.text


def key(record: Record) -> bytes | None:
    return record.key


def is_frozen(process: psutil.Process) -> bool:
    return bool(process.status() == psutil.STATUS_STOPPED)


def in_flight(chain: Chain) -> int:
    """Ask a running member for the records that it has under way."""
    told = as_json(chain.configuration, "status", "status")
    (source,) = told["sources"]
    return sum(sink["in_flight"] or 0 for sink in source["sinks"])
