"""Kafka to Kafka: records arrive as they were, in the partition that they were in."""

import json
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer
from tests.support.loads.op_record import Feed, insert, truncate
from tests.support.oracles.topic_reader import Reader, TopicAdmin
from tests.support.programs.relay import Chain, shown, stored
from tests.support.programs.verb import verb
from walstream.formats.op import OpEncoder
from walstream.op import Table

pytestmark = pytest.mark.kafka
ORIGIN = "7123/shop/0"
WIDE = Table("s", "item", ("id", "n"))


def _as_it_is(value: bytes | None) -> bytes | None:
    return value


@pytest.fixture
def upstream(kafka: KafkaServer, topic_prefix: str) -> str:
    name = f"{topic_prefix}up"
    TopicAdmin(kafka.bootstrap).create(name, 3)
    return name


@pytest.fixture
def feed(kafka: KafkaServer, upstream: str) -> Feed:
    return Feed(kafka.bootstrap, upstream)


@pytest.fixture
def reader(kafka: KafkaServer, topic_prefix: str) -> Iterator[Reader]:
    with Reader(kafka.bootstrap, topic_prefix, _as_it_is) as opened:
        yield opened


@pytest.fixture
def chain(
    kafka: KafkaServer, tmp_path: Path, topic_prefix: str, upstream: str
) -> Iterator[Callable[..., Chain]]:
    made: list[Chain] = []

    def make(**options: Any) -> Chain:
        options.setdefault("topics", [upstream])
        folder = tmp_path / f"chain{len(made)}"
        made.append(
            Chain(kafka.bootstrap, kafka.bootstrap, folder, topic_prefix, **options)
        )
        return made[-1]

    yield make
    for one in made:
        one.close()


def copy_of(reader: Reader, count: int, topic: str) -> list[Any]:
    reader.until(
        lambda records: sum(one.topic == topic for one in records) >= count,
        60,
        what=f"{count} in {topic}",
    )
    reader.read()
    return shown(reader.records, topic)


def test_records_pass_on_as_they_are(
    chain: Callable[..., Chain], feed: Feed, reader: Reader, topic_prefix: str
) -> None:
    big = (
        '{"table_name":"item","col_names":["id"],"lsn":9007199254740993,"seq_id":0,'
        '"op":{"Insert":["9007199254740993"]}, "more" : 1}'
    )
    for number in range(30):
        feed.insert(number, number % 3, ORIGIN if number < 3 else "")
    feed.send_raw(big.encode(), 1, b"\xff\x00")
    feed.send_raw(None, 2, b'["2"]')
    for partition in range(3):
        feed.send(truncate(2000, 3), partition)
    feed.flush()
    with chain(beside={"topic": topic_prefix + "beside"}):
        copied = copy_of(reader, 35, f"{topic_prefix}copy.public.item")
        assert copy_of(reader, 35, f"{topic_prefix}beside") == copied
    assert copied == shown(reader.records, feed.topic)
    assert len(copied) == 35


@pytest.mark.parametrize("delivery", ["idempotent", "transactional"])
def test_a_record_that_fills_a_queue_passes_on(
    kafka: KafkaServer,
    chain: Callable[..., Chain],
    reader: Reader,
    topic_prefix: str,
    delivery: str,
) -> None:
    """The producers of partitions share one: each part held less than the record."""
    admin, limit = TopicAdmin(kafka.bootstrap), 10_000_000
    large, copy = f"{topic_prefix}large", f"{topic_prefix}copy.s.item"
    for topic in (large, copy):
        admin.create(topic, 1, max_message_bytes=str(limit))
    writer = Producer(
        {"bootstrap.servers": kafka.bootstrap, "message.max.bytes": limit}
    )
    for lsn, size in ((1000, 1), (1008, 4_000_000), (1016, 1)):
        op = insert(lsn, 0, [str(lsn), "x" * size], WIDE)
        writer.produce(large, OpEncoder(WIDE).encode(op), str(lsn).encode())
    writer.flush()
    with chain(topics=[large], sink={"delivery": delivery}):
        found = copy_of(reader, 3, copy)
    assert found == shown(reader.records, large)


def test_a_restart_repeats_nothing_and_says_again_where_records_come_from(
    chain: Callable[..., Chain], feed: Feed, reader: Reader, topic_prefix: str
) -> None:
    topic = f"{topic_prefix}copy.public.item"
    for number in range(6):
        feed.insert(number, number % 3, ORIGIN if number < 3 else "")
    feed.flush()
    made = chain()
    with made:
        copy_of(reader, 6, topic)
        assert made.terminate() == 0, made.text
        assert made.said("drained")
    assert stored(feed.bootstrap, f"{topic_prefix}group", feed.topic, 3) == [2, 2, 2]
    for number in range(6, 12):
        feed.insert(number, number % 3)
    feed.flush()
    with made:
        copied = copy_of(reader, 12, topic)
    assert len(copied) == 12
    with_header = [
        [bool(one[3]) for one in copied if one[0] == part] for part in range(3)
    ]
    assert with_header == [[True, False, True, False]] * 3
    assert {one[3][0] for one in copied if one[3]} == {
        ("walstream-source", ORIGIN.encode())
    }
    bare = [(*one[:3], one[4]) for one in copied]
    assert bare == [(*one[:3], one[4]) for one in shown(reader.records, feed.topic)]


def test_a_malformed_record_stops_and_its_neighbours_are_there(
    chain: Callable[..., Chain], feed: Feed, reader: Reader, topic_prefix: str
) -> None:
    topic = f"{topic_prefix}copy.public.item"
    for number in range(5):
        feed.insert(number)
    feed.send_raw(b'{"secret": 1}')
    for number in range(5):
        feed.insert(number)
    feed.flush()
    made = chain().start()
    where = f"topic {feed.topic!r} partition 0 offset 5: not an op record: KeyError"
    group = f"{topic_prefix}group"
    repair = (
        f"kafka-consumer-groups.sh --bootstrap-server {feed.bootstrap} --group {group}"
        f" --topic {feed.topic}:0 --reset-offsets --to-offset 6 --execute"
    )
    made.ends_with(3, where, repair)
    assert "secret" not in made.text
    assert stored(feed.bootstrap, group, feed.topic, 1) == [5]
    assert len(copy_of(reader, 5, topic)) == 5
    run_tool(repair)
    feed.send_raw(b'{"secret": 2}')
    feed.insert(11)
    feed.flush()
    made.source = {"on_poison": "skip"}
    with made:
        copied = copy_of(reader, 11, topic)
        assert len(made.said("is skipped")) == 1
    values = [one[2] for one in shown(reader.records, feed.topic)]
    assert [one[2] for one in copied] == values[:5] + values[6:11] + values[12:]


def test_a_malformed_record_goes_aside_with_its_place_and_cause(
    chain: Callable[..., Chain], feed: Feed, reader: Reader, topic_prefix: str
) -> None:
    aside = f"{topic_prefix}aside"
    feed.insert(1)
    feed.send_raw(b"\xff\x00", 0, b"key", "a/b/0")
    feed.send_raw(b"{}", 0)
    feed.send_raw(b"{}", 0)
    feed.insert(2)
    feed.flush()
    made = chain(source={"on_poison": aside})
    with made:
        assert len(copy_of(reader, 2, f"{topic_prefix}copy.public.item")) == 2
        parked = copy_of(reader, 3, aside)
    assert parked[0][1:3] == (b"key", b"\xff\x00")
    assert parked[0][3] == [
        ("walstream-source", b"a/b/0"),
        ("walstream-topic", feed.topic.encode()),
        ("walstream-partition", b"0"),
        ("walstream-offset", b"1"),
        ("walstream-cause", b"not an op record: JSONDecodeError"),
    ]
    assert len(made.said("is parked")) == 2  # once for each cause


def test_a_topic_of_other_partitions_is_refused(
    chain: Callable[..., Chain], feed: Feed, reader: Reader, topic_prefix: str
) -> None:
    admin = TopicAdmin(feed.bootstrap)
    target = f"{topic_prefix}copy.public.item"
    admin.create(target, 2)
    feed.insert(1, 2)
    feed.flush()
    made = chain().start()
    made.ends_with(
        3,
        f"topic {target!r} has 2 partitions, and the topic that its records come from"
        " has 3",
        f"kafka-topics.sh --bootstrap-server {feed.bootstrap} --alter --topic {target}"
        " --partitions 3",
    )
    assert not shown(reader.read(), target)
    admin.grow(target, 3)
    with made:
        assert len(copy_of(reader, 1, target)) == 1


def test_tables_are_routed_by_what_the_record_names(
    chain: Callable[..., Chain], feed: Feed, reader: Reader, topic_prefix: str
) -> None:
    sink = {
        "topic": "",
        "topics": {
            "s.item": {"name": f"{topic_prefix}mapped"},
            "other": {"name": f"{topic_prefix}bare"},
        },
    }
    feed.send(insert(1, 0, ["1", "2"], WIDE), 1)
    feed.send(insert(1, 1, ["1", "2"], Table("x", "other", ("id", "n"))), 1)
    feed.send_raw(None, 1)
    feed.insert(3, 1)
    feed.insert(4, 1)
    feed.flush()
    made = chain(sink=sink)
    with made:
        assert len(copy_of(reader, 1, f"{topic_prefix}mapped")) == 1
        assert len(copy_of(reader, 2, f"{topic_prefix}bare")) == 2
        group = f"{topic_prefix}group"
        wait_until(
            lambda: stored(feed.bootstrap, group, feed.topic, 2)[1] == 5,
            10,
            "dropped records count as done",
        )
        assert made.said("table has no topic")


def test_events_pass_on_too(
    chain: Callable[..., Chain], feed: Feed, reader: Reader, topic_prefix: str
) -> None:
    value = (
        '{"Host":"h","Database":"d","Table":"T","Action":"insert","WALPosition":7,'
        '"Timestamp":"2026-11-21T06:28:02.5Z","UUID":"u","Columns":'
        '{"a":9007199254740993,"b":1e400}}'
    )
    feed.send_raw(value.encode(), 2, b"h:d:T:insert")
    feed.flush()
    sink = {"format": "event", "topic": topic_prefix + "copy.{table}"}
    with chain(sink=sink):
        copied = copy_of(reader, 1, f"{topic_prefix}copy.T")
    assert copied == shown(reader.records, feed.topic)


def test_topics_that_come_later_or_grow_are_followed(
    chain: Callable[..., Chain], kafka: KafkaServer, reader: Reader, topic_prefix: str
) -> None:
    admin = TopicAdmin(kafka.bootstrap)
    late = f"{topic_prefix}late"
    target = f"{topic_prefix}copy.public.item"
    made = chain(topics=[late])
    with made:
        made.until("upstream topic is missing")
        admin.create(late, 1)
        feed = Feed(kafka.bootstrap, late)
        feed.insert(1)
        feed.flush()
        copy_of(reader, 1, target)
        admin.grow(target, 2)
        admin.grow(late, 2)
        feed = Feed(kafka.bootstrap, late)  # which sees the new partition
        feed.insert(2, 1)
        feed.flush()
        assert [one[0] for one in copy_of(reader, 2, target)] == [0, 1]


def test_records_that_are_gone_are_not_jumped_over(
    chain: Callable[..., Chain], feed: Feed, reader: Reader, topic_prefix: str
) -> None:
    feed.insert(1)
    feed.flush()
    made = chain()
    with made:
        copy_of(reader, 1, f"{topic_prefix}copy.public.item")
        assert made.terminate() == 0
    for number in range(5):
        feed.insert(number)
    feed.flush()
    TopicAdmin(feed.bootstrap).delete_before(feed.topic, 4)
    made.start().ends_with(
        3,
        f"topic {feed.topic!r} partition 0: the group's next offset",
        # the other partitions have lost nothing
        f"--topic {feed.topic}:0 --reset-offsets --to-earliest",
    )


def test_records_that_are_gone_are_missed_where_none_was_ever_read(
    chain: Callable[..., Chain], feed: Feed, reader: Reader, topic_prefix: str
) -> None:
    group = f"{topic_prefix}group"
    feed.insert(1)
    feed.flush()
    made = chain()
    with made:
        copy_of(reader, 1, f"{topic_prefix}copy.public.item")
        assert made.terminate() == 0
    assert stored(feed.bootstrap, group, feed.topic, 3) == [1, 0, 0]
    for number in range(5):
        feed.insert(number, 1)
    feed.flush()
    TopicAdmin(feed.bootstrap).delete_before(feed.topic, 4, 1)
    made.start().ends_with(
        3,
        f"topic {feed.topic!r} partition 1: the group's next offset 0 does not exist",
        f"--topic {feed.topic}:1 --reset-offsets --to-earliest",
    )


def test_malformed_records_do_not_go_among_the_ops(
    chain: Callable[..., Chain], feed: Feed, topic_prefix: str
) -> None:
    """Which topics a template names, the stream alone knows."""
    target = f"{topic_prefix}copy.public.item"
    feed.insert(1)
    feed.flush()
    made = chain(source={"on_poison": target})
    made.start().ends_with(2, f"`on_poison` names topic {target!r}", "name another")


def test_a_group_whose_offsets_are_gone_does_not_begin_by_itself(
    chain: Callable[..., Chain], feed: Feed, reader: Reader, topic_prefix: str
) -> None:
    group, target = f"{topic_prefix}group", f"{topic_prefix}copy.public.item"
    feed.insert(1)
    feed.flush()
    made = chain(source={"consumer": {"auto.offset.reset": "latest"}})
    with made:
        wait_until(
            lambda: stored(feed.bootstrap, group, feed.topic, 3) == [1, 0, 0],
            30,
            "every partition begins at its end",
        )
        feed.insert(2)
        feed.flush()
        copy_of(reader, 1, target)
        assert made.terminate() == 0, made.text
    TopicAdmin(feed.bootstrap).forget_group(group)
    repair = (
        f"kafka-consumer-groups.sh --bootstrap-server {feed.bootstrap} --group {group}"
        f" --topic {feed.topic} --reset-offsets --to-earliest --execute"
    )
    (source,) = asked(made, "positions", "show")["chained"]
    assert source["verdict"]["outcome"] == "stop"
    assert "which are gone" in source["verdict"]["problem"]["what"]
    (checked,) = asked(made, "check", code=3)["sources"]
    assert "upstream-gap" in {one["code"] for one in checked["findings"]}
    made.start().ends_with(
        3, f"group {group!r} stored offsets of topic {feed.topic!r}", repair
    )
    run_tool(repair)
    with made:
        assert len(copy_of(reader, 3, target)) == 3


def test_markers_of_transactions_count_as_read(
    chain: Callable[..., Chain], feed: Feed, reader: Reader, topic_prefix: str
) -> None:
    producer = Producer(
        {"bootstrap.servers": feed.bootstrap, "transactional.id": topic_prefix}
    )
    producer.init_transactions(30)
    for taken_back in (False, True):
        producer.begin_transaction()
        op = insert(1, 0, ["1", "2"])
        producer.produce(feed.topic, OpEncoder(op.table).encode(op), partition=0)
        assert not producer.flush(30)
        if taken_back:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
    with chain() as made:
        assert len(copy_of(reader, 1, f"{topic_prefix}copy.public.item")) == 1
        group = f"{topic_prefix}group"
        wait_until(
            lambda: stored(feed.bootstrap, group, feed.topic, 1) == [4],
            10,
            "the last marker is behind it",
        )
        until_no_lag(made)


def test_a_topic_that_is_read_under_another_address_is_not_written_to(
    chain: Callable[..., Chain], feed: Feed
) -> None:
    feed.insert(1)
    feed.flush()
    other = feed.bootstrap.replace("127.0.0.1", "localhost")
    assert other != feed.bootstrap
    made = chain(
        sink={"topic": feed.topic}, source={"consumer": {"bootstrap.servers": other}}
    )
    made.start().ends_with(2, f"topic {feed.topic!r} of sinks.", "reads")


def test_a_table_that_no_topic_can_be_named_after_is_malformed(
    chain: Callable[..., Chain], feed: Feed, reader: Reader, topic_prefix: str
) -> None:
    feed.send_raw(None)
    feed.send(insert(1, 0, ["1", "2"], Table("s", "x" * 300, ("id", "n"))))
    feed.insert(1)
    feed.send_raw(None)
    feed.flush()
    made = chain().start()
    made.ends_with(3, "offset 0: a tombstone before any op", "--to-offset 1")
    made.source = {"on_poison": "skip"}
    made.sink = {"verbose": True}
    with made:
        copied = copy_of(reader, 2, f"{topic_prefix}copy.public.item")
        assert len(made.said("is skipped")) == 2
        (line,) = [one for one in made.log if one["event"] == "record"]
        assert (line["table"], line["lsn"]) == ("public.item", "0/3E8")
        assert len([one for one in made.log if one["event"] == "tombstone"]) == 1
    assert [one[2] for one in copied] == [
        one[2] for one in shown(reader.records, feed.topic)[2:]
    ]


_SHARING = {
    "cooperative": {"partition.assignment.strategy": "cooperative-sticky"},
    "eager": {"partition.assignment.strategy": "range"},
    "broker": {"group.protocol": "consumer"},
}


@pytest.mark.parametrize(
    "how",
    [
        "cooperative",
        pytest.param("eager", marks=pytest.mark.fault_long),
        pytest.param("broker", marks=pytest.mark.fault_long),
    ],
)
def test_two_instances_share_a_group(
    chain: Callable[..., Chain],
    feed: Feed,
    reader: Reader,
    topic_prefix: str,
    how: str,
) -> None:
    target = f"{topic_prefix}copy.public.item"
    timeout = {} if how == "broker" else {"session.timeout.ms": 6000}
    source = {"consumer": {**_SHARING[how], **timeout}}
    first, second = chain(source=source), chain(source=source)
    sent = 0

    def send(count: int) -> None:
        nonlocal sent
        for _ in range(count):
            feed.insert(sent, sent % 3, ORIGIN if sent < 3 else "")
            sent += 1
        feed.flush()

    with first:
        send(3000)
        with second:
            second.until("partition assigned")
            send(3000)
            assert first.terminate() == 0, first.text
            send(3000)
            first.start().until("partition assigned")
            send(3000)
            second.kill()
            send(30)
            copy_of(reader, sent, target)
            group = f"{topic_prefix}group"
            ends = [sent // 3] * 3
            wait_until(
                lambda: stored(feed.bootstrap, group, feed.topic, 3) == ends,
                60,
                "all is stored",
            )
    for partition in range(3):
        given = [o[2] for o in shown(reader.read(), feed.topic) if o[0] == partition]
        came = [o[2] for o in shown(reader.records, target) if o[0] == partition]
        assert list(dict.fromkeys(came)) == given


def test_status_check_and_positions_know_the_group(
    chain: Callable[..., Chain], feed: Feed, reader: Reader, topic_prefix: str
) -> None:
    group = f"{topic_prefix}group"
    for number in range(6):
        feed.insert(number, number % 3)
    feed.send_raw(b"{}", 0)
    feed.flush()
    made = chain(source={"on_poison": "skip"}, topics=[feed.topic, "absent"])
    with made:
        copy_of(reader, 6, f"{topic_prefix}copy.public.item")
        wait_until(
            lambda: stored(feed.bootstrap, group, feed.topic, 3) == [3, 2, 2],
            10,
            "all is stored",
        )
        running = until_no_lag(made)
        assert (running["state"], running["kind"]) == ("streaming", "kafka")
        assert asked(made, "positions", "show")["chained"][0]["verdict"]["outcome"] == (
            "chaining"
        )
        assert made.terminate() == 0
    feed.insert(7, 1)
    feed.flush()
    (rest,) = asked(made, "status")["sources"]
    assert (rest["state"], rest["lag_records"], rest["exit_code"]) == ("stopped", 1, 0)
    assert (rest["ops"], rest["delivered"]) == (7, 7)
    assert rest["poisoned"] == {"not an op record: KeyError": 1}
    (shown_there,) = asked(made, "positions", "show")["chained"]
    assert [(one["stored"], one["behind"]) for one in shown_there["partitions"]] == [
        (3, 0),
        (2, 1),
        (2, 0),
    ]
    found = asked(made, "check")
    assert found["exit_code"] == 0
    codes = [one["code"] for one in found["sources"][0]["findings"]]
    assert "upstream-topic-missing" in codes
    for words in (["rewind", "app", "--to", "0/1"], ["reset", "app", "--yes"]):
        refused = cli(made, "positions", *words)
        assert refused.returncode == 2
        assert f"offsets of its group '{group}'" in " ".join(refused.stderr.split())
        assert f"--topic {feed.topic} --reset-offsets --to-earliest" in refused.stderr
    TopicAdmin(feed.bootstrap).delete_before(feed.topic, 3)
    for number in range(3):
        feed.insert(number, 0)
    feed.flush()
    TopicAdmin(feed.bootstrap).delete_before(feed.topic, 5)
    assert asked(made, "check", code=3)["exit_code"] == 3
    assert asked(made, "status", code=3)["exit_code"] == 3


def until_no_lag(made: Chain) -> dict[str, Any]:
    """Wait until its status says so: a worker reports each second."""
    found: list[dict[str, Any]] = []

    def told() -> bool:
        found[:] = asked(made, "status")["sources"]
        return found[0]["lag_records"] == 0  # type: ignore[no-any-return]  # of JSON

    wait_until(told, 30, "nothing lags")
    return found[0]


def run_tool(repair: str) -> None:
    """Run a command of Kafka's, exactly as it was printed."""
    tool, *arguments = shlex.split(repair)
    name = tool.removeprefix("kafka-").removesuffix(".sh")
    subprocess.run(
        [sys.executable, "-m", "tests.support.servers.kafka_tools", name, *arguments],
        check=True,
        timeout=60,
    )


def cli(made: Chain, *words: str) -> subprocess.CompletedProcess[str]:
    return verb(made.configuration, *words)


def asked(made: Chain, *words: str, code: int = 0) -> Any:
    """Give what a command prints as JSON."""
    ended = cli(made, *words, "--json")
    assert ended.returncode == code, ended.stdout + ended.stderr
    return json.loads(ended.stdout)


def test_offsets_that_an_operator_set_are_copied_again(
    chain: Callable[..., Chain], feed: Feed, reader: Reader, topic_prefix: str
) -> None:
    """In transactions, too: Kafka's position would leave out what it covers."""
    topic = f"{topic_prefix}copy.public.item"
    for number in range(30):
        feed.insert(number, number % 3)
    feed.flush()
    made = chain(sink={"delivery": "transactional"})
    with made:
        copy_of(reader, 30, topic)
        made.kill()  # the group may not know of the last ones
        made.start().streaming()
        feed.insert(30, 0)
        feed.flush()
        assert len(copy_of(reader, 31, topic)) == 31
        assert made.terminate() == 0, made.text
    consumer = Consumer(
        {"bootstrap.servers": feed.bootstrap, "group.id": f"{topic_prefix}group"}
    )
    where = [TopicPartition(feed.topic, number, 0) for number in range(3)]
    consumer.commit(offsets=where, asynchronous=False)
    consumer.close()
    with made:
        assert len(copy_of(reader, 62, topic)) == 62
        assert made.terminate() == 0, made.text


def test_offsets_that_an_operator_set_are_copied_again_beyond_what_has_no_topic(
    chain: Callable[..., Chain], feed: Feed, reader: Reader, topic_prefix: str
) -> None:
    """The group goes on without a new position: the one of before does not count."""
    topic = f"{topic_prefix}mapped"
    for number in range(5):
        feed.send(
            insert(feed.next_lsn(), 0, [str(number), "1"], Table("s", "x", ("id", "n")))
        )
    feed.send_raw(b"malformed")
    for number in range(6, 11):
        feed.insert(number)
    feed.flush()
    sink = {
        "delivery": "transactional",
        "topic": "",
        "topics": {"public.item": {"name": topic}},
    }
    made = chain(sink=sink, source={"on_poison": "skip"})
    with made:
        copy_of(reader, 5, topic)
        assert made.terminate() == 0, made.text
    consumer = Consumer(
        {"bootstrap.servers": feed.bootstrap, "group.id": f"{topic_prefix}group"}
    )
    consumer.commit(offsets=[TopicPartition(feed.topic, 0, 0)], asynchronous=False)
    consumer.close()
    made.source = {"on_poison": "stop"}
    made.start().ends_with(3)
    assert stored(feed.bootstrap, f"{topic_prefix}group", feed.topic, 1) == [5]
    made.source = {"on_poison": "skip"}
    with made:
        assert len(copy_of(reader, 10, topic)) == 10
        assert made.terminate() == 0, made.text


def test_a_group_that_begins_anew_copies_all_whatever_positions_say(
    chain: Callable[..., Chain], feed: Feed, reader: Reader, topic_prefix: str
) -> None:
    topic = f"{topic_prefix}copy.public.item"
    for number in range(9):
        feed.insert(number, number % 3)
    feed.flush()
    with chain(sink={"delivery": "transactional"}) as made:
        copy_of(reader, 9, topic)
        assert made.terminate() == 0, made.text
    TopicAdmin(feed.bootstrap).forget_group(f"{topic_prefix}group")
    with chain(sink={"delivery": "transactional"}) as made:  # on another machine
        assert len(copy_of(reader, 18, topic)) == 18
        assert made.said("Kafka's position does not count")
        made.kill()
        made.start().streaming()
        feed.insert(9)
        feed.flush()
        assert len(copy_of(reader, 19, topic)) == 19
