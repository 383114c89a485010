"""The installed `walstream tail` on a real broker: in a pipe, and at a terminal."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import jsonschema
import pytest
from confluent_kafka import Producer
from rich.cells import cell_len

from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer, OwnKafka
from tests.support.oracles import vectors
from tests.support.oracles.topic_reader import TopicAdmin
from tests.support.programs.walstream import toml
from tests.support.project.own_coverage import ROOT
from walstream.formats.op import OpEncoder
from walstream.op import Kind, ReplicationOp, Table

COMMAND: Final = Path(sys.executable).with_name("walstream")
SCHEMA: Final = json.loads((ROOT / "docs/schemas/tail.json").read_text())
TABLE: Final = Table("shop", "orders", ("id", "state"))
DRIVING: Final = "\x1b[2J\x1b]0;title\x07\r\u202e\x9b31m"
TIME: Final = re.compile(r":\d\d\.\d{3}Z")
WAIT_S: Final = 60.0
ENVIRONMENT: Final = {  # as most have it
    name: text
    for name, text in os.environ.items()
    if name not in {"NO_COLOR", "FORCE_COLOR", "COLUMNS", "PYTHONUNBUFFERED"}
}


class Tail:
    """One running command, in a pipe."""

    def __init__(
        self, *arguments: str, environment: dict[str, str], within_s: float = 600
    ) -> None:
        self._process = subprocess.Popen(
            ["timeout", str(within_s), COMMAND, "tail", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**ENVIRONMENT, **environment},
            cwd="/",  # no configuration lies there
        )

    def line(self) -> str:
        """Wait for the next line, as whoever reads the pipe does."""
        assert self._process.stdout is not None
        return _line_of(self._process.stdout).decode()

    def says(self) -> str:
        """Wait for the next line for the operator."""
        assert self._process.stderr is not None
        return _line_of(self._process.stderr).decode()

    def ends(self, number: signal.Signals | None = None) -> tuple[int, str, str]:
        """Signal it, if asked to; give its exit code, and the rest of what it wrote."""
        if number is not None:
            self._process.send_signal(number)
        out, error = self._process.communicate(timeout=WAIT_S)
        return self._process.returncode, out.decode(), error.decode()

    def leave(self) -> int:
        """Close the pipe that it writes to; give its exit code."""
        assert self._process.stdout is not None
        self._process.stdout.close()
        return self._process.wait(WAIT_S)

    def rest(self) -> str:
        """Give what else it said to the operator."""
        assert self._process.stderr is not None
        return self._process.stderr.read().decode()

    def close(self) -> None:
        self._process.kill()
        for pipe in (self._process.stdout, self._process.stderr):
            assert pipe is not None
            pipe.close()
        self._process.wait()


def _line_of(pipe: Any) -> bytes:
    """Read a byte at a time: the rest stays for `communicate`."""
    line = b""
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([pipe], [], [], WAIT_S)
        assert ready, f"no line came, but {line!r}"
        part = os.read(pipe.fileno(), 1)
        assert part, f"it ended after {line!r}"
        line += part
    return line


@pytest.fixture
def tail(kafka: KafkaServer) -> Iterator[Callable[..., Tail]]:
    """Start commands on the shared broker, and end them with the test."""
    started: list[Tail] = []

    def start(
        *arguments: str, brokers: str = kafka.bootstrap, **environment: str
    ) -> Tail:
        named = ("--brokers", brokers) if brokers else ()
        started.append(Tail(*named, *arguments, environment=environment))
        return started[-1]

    yield start
    for one in started:
        one.close()


class Topics:
    """Makes topics, and writes to them."""

    def __init__(self, bootstrap: str, prefix: str) -> None:
        self.admin = TopicAdmin(bootstrap)
        self.prefix = prefix
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})

    def make(self, name: str, partitions: int = 1) -> str:
        self.admin.create(f"{self.prefix}{name}", partitions, retention_ms="-1")
        return f"{self.prefix}{name}"

    def write(self, topic: str, *records: tuple[str | None, bytes | None]) -> None:
        for key, value in records:
            self._producer.produce(topic, value, key=key)
        assert self._producer.flush(30) == 0

    def write_at(
        self, topic: str, partition: int, time_ms: int, record: tuple[str, bytes | None]
    ) -> None:
        key, value = record
        self._producer.produce(
            topic, value, key, partition=partition, timestamp=time_ms
        )
        assert self._producer.flush(30) == 0


@pytest.fixture
def topics(kafka: KafkaServer, topic_prefix: str) -> Topics:
    return Topics(kafka.bootstrap, topic_prefix)


def insert(number: int, state: str = "new") -> tuple[str, bytes]:
    op = ReplicationOp(Kind.INSERT, TABLE, 16, number, new=[str(number), state])
    return f'["{number}"]', OpEncoder(TABLE).encode(op)


ALL: Final = ("--from-beginning", "--until-end")


def test_from_now_shows_what_comes_and_ends_at_ctrl_c(
    tail: Callable[..., Tail], topics: Topics
) -> None:
    topic = topics.make("t", 2)
    topics.write(topic, insert(1))
    shown = tail(topic)
    assert shown.says() == "1 topic, 2 partitions, from now; Ctrl-C ends\n"
    topics.write(topic, insert(2))
    assert re.fullmatch(
        r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z 0/10 #2 insert shop\.orders \["2"\]'
        r" id: 2, state: new\n",
        shown.line(),
    )
    assert shown.ends(signal.SIGINT) == (0, "", "")


def test_from_the_beginning_to_the_end_is_cat_in_the_order_of_each_partition(
    tail: Callable[..., Tail], topics: Topics
) -> None:
    topic = topics.make("t", 3)
    topics.write(topic, *map(insert, range(500)))
    code, out, _ = tail(f"{topics.prefix}?", *ALL, "--json").ends()
    assert code == 0
    offsets: dict[int, list[int]] = {}
    for document in map(json.loads, out.splitlines()):
        offsets.setdefault(document["partition"], []).append(document["offset"])
    assert sum(map(len, offsets.values())) == 500
    assert all(part == list(range(len(part))) for part in offsets.values())


def test_limit_and_end_stop_it(tail: Callable[..., Tail], topics: Topics) -> None:
    topic = topics.make("t")
    topics.write(topic, insert(1))
    limited, cat = tail(topic, "--from-beginning", "-n", "2"), tail(topic, *ALL)
    for one in (limited, cat):
        one.says()
    topics.write(topic, insert(2), insert(3))
    assert len(cat.ends()[1].splitlines()) == 1
    assert [line.split()[2] for line in limited.ends()[1].splitlines()] == ["#1", "#2"]


def test_a_limit_alone_is_the_last_of_all_partitions(
    tail: Callable[..., Tail], topics: Topics, kafka: KafkaServer
) -> None:
    """GIVEN two partitions, in which markers of transactions take offsets."""
    topic = topics.make("t", 2)
    for number in range(40):
        topics.write_at(topic, number % 2, 1_700_000_000_000 + number, insert(number))
    producer = Producer(
        {"bootstrap.servers": kafka.bootstrap, "transactional.id": topic}
    )
    producer.init_transactions(30)
    for number in range(40, 50):
        producer.begin_transaction()
        key, value = insert(number)
        time_ms = 1_700_000_000_000 + number
        producer.produce(topic, value, key, partition=1, timestamp=time_ms)
        producer.commit_transaction(30)

    # WHEN the last are asked for, THEN they are those, oldest first
    shown = tail(topic, "-n", "20")
    code, out, said = shown.ends()
    assert (code, said) == (0, "1 topic, 2 partitions, the last 20\n")
    assert [line.split()[2] for line in out.splitlines()] == [
        f"#{number}" for number in range(30, 50)
    ]
    # and of one key, however far back it lies
    by_key = tail(topic, "-n", "3", "--key", "4").ends()[1]
    assert [line.split()[2] for line in by_key.splitlines()] == ["#4"]
    assert len(tail(topic, "-n", "99").ends()[1].splitlines()) == 50


def test_from_a_time_begins_with_the_first_record_of_it(
    tail: Callable[..., Tail], topics: Topics
) -> None:
    topic = topics.make("t", 3)
    for number in range(10):
        time_ms = 1_700_000_000_000 + 1000 * number  # 2023-11-14T22:13:20Z
        topics.write_at(topic, number % 2, time_ms, insert(number))
    fixed = tail(topic, "--from", "2023-11-14 22:13:24", "--until-end")
    code, out, said = fixed.ends()
    assert (code, said) == (
        0,
        "1 topic, 3 partitions, from 2023-11-14T22:13:24+00:00 until the end\n",
    )
    numbers = {line.split()[2] for line in out.splitlines()}
    assert numbers == {f"#{number}" for number in range(4, 10)}
    aged = tail(topic, "--from", "-1h", "-n", "1")
    aged.says()
    topics.write(topic, insert(77))
    assert "#77" in aged.ends()[1]


def test_a_format_prints_the_bytes_of_the_records(
    kafka: KafkaServer, topics: Topics
) -> None:
    topic = topics.make("t")
    topics.write_at(topic, 0, 1_700_000_000_123, ("k", b"\xff\x1b"))
    topics.write_at(topic, 0, 1_700_000_000_124, ("k", None))
    form = r"%t %p %o %k %v %T %S\n"
    done = subprocess.run(
        [COMMAND, "tail", "--brokers", kafka.bootstrap, topic, *ALL, "-f", form],
        check=True,
        capture_output=True,
        timeout=WAIT_S,
    )
    name = topic.encode()
    assert done.stdout == (
        name
        + b" 0 0 k \xff\x1b 1700000000123 2\n"
        + name
        + b" 0 1 k  1700000000124 -1\n"
    )


def test_key_and_table_choose(tail: Callable[..., Tail], topics: Topics) -> None:
    topic = topics.make("t", 2)
    topics.write(topic, *map(insert, range(20)), ('["7"]', None))
    by_key = tail(topic, *ALL, "--key", "7")
    by_both = tail(topic, *ALL, "--key", '["7"]', "--table", "no", "--table", "ord*")
    assert [line.split()[-1] for line in by_key.ends()[1].splitlines()] == [
        "new",
        '["7"]',
    ]
    assert len(by_both.ends()[1].splitlines()) == 1


def test_json_of_every_format_fits_the_published_schema(
    tail: Callable[..., Tail], topics: Topics
) -> None:
    topic = topics.make("t")
    values = [*vectors.ALL, None, b"text", b"\xff\xfe", DRIVING.encode()]
    topics.write(topic, *[("k" + DRIVING, value) for value in values])
    code, out, _ = tail(topic, *ALL, "--json", PYTHONIOENCODING="ascii").ends()
    assert code == 0
    assert out.replace("\n", "").isprintable()
    documents = [json.loads(line) for line in out.splitlines()]
    for document in documents:
        jsonschema.validate(document, SCHEMA)
    assert len(documents) == len(values)
    assert documents[1]["new"]["note"] == 'hé"llo\n'
    assert documents[-1]["value"] == DRIVING


def test_no_byte_of_a_record_drives_who_reads_the_pipe(
    tail: Callable[..., Tail], topics: Topics
) -> None:
    topic = topics.make("t")
    values = [DRIVING.encode(), b"\x1b\xff", insert(1, DRIVING)[1], b"x" * 500]
    topics.write(topic, *[(DRIVING, value) for value in values])
    short = tail(topic, *ALL, PYTHONIOENCODING="ascii")
    full = tail(topic, *ALL, "--full")
    for one in (short, full):
        code, out, _ = one.ends()
        assert code == 0
        assert out.replace("\n", "").isprintable()
        if one is full:
            assert len(out.splitlines()) == len(values)
            assert "x" * 500 in out
        else:
            assert max(map(cell_len, out.splitlines())) <= 100


def test_what_comes_later_and_matches_is_read_from_its_beginning(
    tail: Callable[..., Tail], topics: Topics, kafka: KafkaServer, tmp_path: Path
) -> None:
    """GIVEN a configuration, and no topic yet, as before the first run."""
    source = {"kind": "postgres", "dsn": "host=/nowhere", "tables": ["shop.*"]}
    sink = {"kind": "kafka", "topic": topics.prefix + "{schema}.{table}"}
    producer = {"bootstrap.servers": kafka.bootstrap, "linger.ms": "7"}
    configuration = tmp_path / "walstream.toml"
    document = {
        "sources": {"app": {**source, "sinks": ["kafka"]}},
        "sinks": {"kafka": {**sink, "producer": producer}},
    }
    configuration.write_text(toml(document))
    shown = tail("-c", str(configuration), brokers="")
    assert shown.says() == "0 topics, 0 partitions, from now; Ctrl-C ends\n"

    # WHEN topics come, of which one is none of its own
    topics.make("other.b")
    first, second = topics.make("shop.a"), topics.make("shop.b", 2)
    topics.write(second, insert(1))
    assert {shown.says(), shown.says()} == {
        f"topic {first} has 1 new partition\n",
        f"topic {second} has 2 new partitions\n",
    }
    assert "#1 insert" in shown.line()

    # WHEN partitions come; a client that knows none yet spreads over all of them
    topics.admin.grow(first, 3)
    assert shown.says() == f"topic {first} has 2 new partitions\n"
    writer = Topics(topics.admin.bootstrap, topics.prefix)
    writer.write(first, *map(insert, range(100, 130)))
    numbers = {shown.line().split()[2] for _ in range(30)}
    assert numbers == {f"#{number}" for number in range(100, 130)}

    # WHEN one of several goes, THEN the others are read on
    topics.admin.delete(second)
    assert shown.says() == f"topic {second} was deleted\n"
    writer.write(first, insert(200))
    assert "#200 insert" in shown.line()
    assert shown.ends(signal.SIGTERM) == (0, "", "")


def test_deleted_topic_is_an_error(tail: Callable[..., Tail], topics: Topics) -> None:
    topic = topics.make("t")
    shown = tail(topic)
    shown.says()
    topics.admin.delete(topic)
    code, out, error = shown.ends()
    assert (code, out) == (3, "")
    assert error == f"walstream: topic '{topic}' was deleted while it was read\n"


def test_a_broker_that_restarts_is_waited_for(
    tail: Callable[..., Tail], own_kafka: OwnKafka
) -> None:
    broker = own_kafka()
    topics = Topics(broker.bootstrap, "")
    topic = topics.make("t")
    shown = tail(topic, brokers=broker.bootstrap)
    assert shown.says().startswith("1 topic, ")
    topics.write(topic, insert(1))
    assert "#1 insert" in shown.line()
    broker.stop()
    assert "; waiting until it answers" in shown.says()
    broker.start()
    assert shown.says() == "Kafka answers again\n"
    topics.write(topic, insert(2))
    assert "#2 insert" in shown.line()
    assert shown.ends(signal.SIGTERM) == (0, "", "")


def test_reader_that_has_enough_is_no_error(
    tail: Callable[..., Tail], topics: Topics
) -> None:
    topic = topics.make("t")
    topics.write(topic, *map(insert, range(5000)))
    busy, quiet = tail(topic, "--from-beginning"), tail(topic)
    busy.line()
    quiet.says()
    assert busy.leave() == 0
    assert quiet.leave() == 0  # although nothing is written any more
    assert busy.says().startswith("1 topic, ")
    assert busy.rest() == quiet.rest() == ""


def test_output_that_takes_no_more_is_an_error(
    kafka: KafkaServer, topics: Topics
) -> None:
    topic = topics.make("t")
    topics.write(topic, insert(1))
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            [COMMAND, "tail", "--brokers", kafka.bootstrap, topic, *ALL],
            check=False,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=WAIT_S,
        )
    assert ended.returncode == 1
    assert "writing the output: No space left on device" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_missing_topic_is_named_with_what_is_near(
    tail: Callable[..., Tail], topics: Topics
) -> None:
    topic = topics.make("orders")
    code, out, error = tail(topic[:-1]).ends()
    assert (code, out) == (2, "")
    assert f"there is no topic '{topic[:-1]}'\n  did you mean {topic}" in error


@pytest.fixture(scope="module", autouse=True)
def nowhere() -> Iterator[Tail]:
    """Start it first: it waits while the other tests run."""
    started = Tail("--brokers", "127.0.0.1:1", "t", environment={}, within_s=50)
    yield started
    started.close()


def test_brokers_that_are_away_are_told(nowhere: Tail) -> None:
    code, out, error = nowhere.ends()
    assert (code, out) == (5, "")
    assert "127.0.0.1:1" in error
    assert "Connection refused" in error
    assert "Traceback" not in error


class Terminal:
    """The command at a real terminal, of any size."""

    def __init__(self, columns: int, *arguments: str, **environment: str) -> None:
        self._master, slave = pty.openpty()
        self.resize(columns)
        self._process = subprocess.Popen(
            [COMMAND, "tail", *arguments],
            stdin=slave,
            stdout=slave,
            stderr=subprocess.DEVNULL,
            env={**ENVIRONMENT, "TERM": "xterm-256color", **environment},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - ours alone
        )
        os.close(slave)
        self.text = ""

    def resize(self, columns: int) -> None:
        size = struct.pack("HHHH", 24, columns, 0, 0)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, size)

    def until(self, holds: Callable[[str], object]) -> str:
        wait_until(lambda: self._read() and holds(self.text), WAIT_S, "it is shown")
        return self.text

    def _read(self) -> bool:
        ready, _, _ = select.select([self._master], [], [], 0)
        if ready:
            self.text += os.read(self._master, 65536).decode()
        return True

    def type(self, text: str) -> int:
        """Type; give the exit code."""
        os.write(self._master, text.encode())
        return self._process.wait(WAIT_S)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._master)


@pytest.fixture
def terminal(kafka: KafkaServer) -> Iterator[Callable[..., Terminal]]:
    opened: list[Terminal] = []

    def start(columns: int, *arguments: str, **environment: str) -> Terminal:
        arguments = ("--brokers", kafka.bootstrap, *arguments)
        opened.append(Terminal(columns, *arguments, **environment))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def test_terminal_gets_colours_its_own_width_and_no_orders(
    terminal: Callable[..., Terminal], topics: Topics
) -> None:
    topic = topics.make("t")
    values = [vectors.OPS[name] for name in ("insert", "update", "delete")]
    long = [("k", vectors.ROW), ("k" + DRIVING, insert(3, DRIVING * 4)[1])]
    topics.write(topic, *[('["1"]', value) for value in values], *long)
    coloured = terminal(64, topic, "--from-beginning")
    plain = terminal(80, topic, "--from-beginning", NO_COLOR="1")
    texts = [
        one.until(lambda text: len(TIME.findall(text)) == 5)
        for one in (coloured, plain)
    ]

    assert "\x1b[32minsert\x1b[0m" in texts[0]
    assert "\x1b[33mupdate\x1b[0m" in texts[0]
    assert "\x1b[31mdelete\x1b[0m" in texts[0]
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", texts[1])
    for text, width in zip(texts, (64, 80), strict=True):
        bare = re.sub(r"\x1b\[[0-9;]*m", "", text)  # rich's own
        assert bare.replace("\r\n", "").isprintable()
        assert width - 24 < max(map(cell_len, bare.split("\r\n"))) <= width

    coloured.resize(200)
    topics.write(topic, ("k", vectors.ROW))
    text = coloured.until(lambda text: text.count("/bin/é") == 2)
    assert "\r\n    " not in text[text.rindex("processes") :]
    assert coloured.type("\x03") == 0  # Ctrl-C
