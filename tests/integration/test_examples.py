"""The examples of docs/examples run, and do what they say; so does `tail`."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import pytest

from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database, PostgresServer, temporary_database
from tests.support.loads.op_record import Feed, insert
from tests.support.oracles.topic_reader import TopicAdmin
from walstream.formats.row import row_hash
from walstream.op import Kind, ReplicationOp, Table
from walstream.row import OMITTED, Row

_ROOT = Path(__file__).parents[2]
_EXAMPLES = _ROOT / "docs" / "examples"
ORDERS = Table("public", "orders", ("id", "customer", "amount"))


@pytest.fixture
def target(newest_postgres: PostgresServer) -> Iterator[Database]:
    with temporary_database(newest_postgres) as database:
        yield database


@pytest.fixture
def orders(kafka: KafkaServer, topic_prefix: str) -> str:
    """Make a topic of some orders."""
    topic = f"{topic_prefix}public.orders"
    TopicAdmin(kafka.bootstrap).create(topic, 2)
    feed = Feed(kafka.bootstrap, topic)
    feed.send(insert(8, 0, ["1", "ann", "10.50"], ORDERS))
    feed.send(insert(8, 1, ["2", "bob", "1"], ORDERS), 1)
    old, new = ["1", "ann", "10.50"], ["1", "ann", "7.50"]
    feed.send(ReplicationOp(Kind.UPDATE, ORDERS, 16, 0, old=old, new=new))
    feed.send(ReplicationOp(Kind.DELETE, ORDERS, 24, 0, old=["2", "bob", "1"]), 1)
    feed.send(insert(24, 1, ["3", "bob", "5"], ORDERS), 1)
    feed.flush()
    return topic


@contextmanager
def running(folder: Path, *command: str | Path) -> Iterator[Path]:
    """Run a command; give the file that its output goes to."""
    path = folder / "output.txt"
    with path.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, *command], stdout=output, stderr=output, cwd=_ROOT
        )
        try:
            yield path
        finally:
            process.terminate()
            process.wait(30)


def test_the_basic_example_prints_each_change(
    kafka: KafkaServer, orders: str, tmp_path: Path
) -> None:
    with running(tmp_path, _EXAMPLES / "basic.py", kafka.bootstrap, orders) as output:
        wait_until(lambda: output.read_text().count("\n") == 5, 30, "five changes")
        lines = output.read_text().splitlines()
    assert sorted(lines) == [
        "Insert 1 10.50",
        "Insert 2 1",
        "Insert 3 5",
        "Update 1 7.50",
        "gone: 2",
    ]


def test_the_idempotent_example_keeps_totals(
    kafka: KafkaServer, orders: str, target: Database, tmp_path: Path
) -> None:
    expected = [("ann", Decimal("7.50")), ("bob", Decimal(5))]
    arguments = (kafka.bootstrap, orders, target.dsn)

    def totals() -> bool:
        if target.fetch("SELECT to_regclass('totals')") == [(None,)]:
            return False
        return target.fetch("SELECT * FROM totals ORDER BY customer") == expected

    with running(tmp_path, _EXAMPLES / "idempotent.py", *arguments):
        wait_until(totals, 30, "the totals are right")


def test_the_batch_example_logs_each_change_once(
    kafka: KafkaServer, orders: str, target: Database, tmp_path: Path
) -> None:
    arguments = (kafka.bootstrap, orders, target.dsn)

    def rows() -> list[tuple[str, int, Decimal]]:
        if target.fetch("SELECT to_regclass('order_log')") == [(None,)]:
            return []
        return target.fetch("SELECT * FROM order_log ORDER BY id, kind")

    with running(tmp_path, _EXAMPLES / "batches.py", *arguments):
        wait_until(lambda: len(rows()) == 5, 30, "five changes are logged")
    assert rows() == [
        ("Insert", 1, Decimal("10.50")),
        ("Update", 1, Decimal("7.50")),
        ("Delete", 2, Decimal(1)),
        ("Insert", 2, Decimal(1)),
        ("Insert", 3, Decimal(5)),
    ]


def test_the_routes_example_packs_parcels_of_a_pattern_of_topics(
    kafka: KafkaServer, orders: str, target: Database, tmp_path: Path
) -> None:
    feed = Feed(kafka.bootstrap, orders)
    feed.send(insert(32, 0, ["9", "x"], Table("public", "notes", ("id", "text"))))
    feed.flush()
    arguments = (kafka.bootstrap, orders.replace("public.orders", "pub*"), target.dsn)

    def others() -> list[tuple[str, str]]:
        if target.fetch("SELECT to_regclass('other_change')") == [(None,)]:
            return []
        return target.fetch("SELECT * FROM other_change")

    with running(tmp_path, _EXAMPLES / "routes.py", *arguments) as output:
        wait_until(lambda: len(others()) == 1, 30, "the other table's row came")
        wait_until(
            lambda: len(target.fetch("SELECT FROM parcel")) == 2, 30, "two are packed"
        )
        text = output.read_text()
    assert others() == [("public.notes", "Insert")]
    assert target.fetch("SELECT * FROM parcel ORDER BY id") == [(1, "ann"), (3, "bob")]
    assert f"reading {orders}, 2 partitions" in text


def test_the_example_of_whole_rows_finds_what_an_update_left_out(
    kafka: KafkaServer, target: Database, tmp_path: Path, topic_prefix: str
) -> None:
    topic = f"{topic_prefix}public.docs"
    docs = Table("public", "docs", ("id", "title", "body"))
    TopicAdmin(kafka.bootstrap).create(topic, 1)
    feed = Feed(kafka.bootstrap, topic)
    feed.send(insert(8, 0, ["1", "old", "long " * 200], docs))
    rows: list[Row] = [["1", "new", OMITTED], ["2", "other", OMITTED]]
    for number, row in enumerate(rows):
        update = ReplicationOp(Kind.UPDATE, docs, 16, number, new=row, absent=True)
        feed.send(update)
    feed.flush()
    arguments = (kafka.bootstrap, topic, target.dsn)

    def words() -> list[tuple[int, str]]:
        if target.fetch("SELECT to_regclass('found')") == [(None,)]:
            return []
        return target.fetch(
            "SELECT id, array_to_string(tsvector_to_array(words), ' ') FROM found"
        )

    with running(tmp_path, _EXAMPLES / "whole_rows.py", *arguments) as output:
        wait_until(lambda: words() == [(1, "long new")], 30, "it is found")
        assert "unknown: <Update public.docs 0/10 1" in output.read_text()


def test_the_coroutine_example_looks_orders_up(
    kafka: KafkaServer, orders: str, tmp_path: Path
) -> None:
    arguments = (_EXAMPLES / "coroutine.py", kafka.bootstrap, orders)
    with running(tmp_path, *arguments) as output:
        wait_until(lambda: output.read_text().count("costs") == 4, 30, "four prices")
        lines = output.read_text().splitlines()
    assert sorted(lines) == [
        "1 costs 10.50",
        "1 costs 7.50",
        "2 costs 1",
        "3 costs 5",
    ]


def test_the_mirror_example_keeps_a_table_identical(
    kafka: KafkaServer, orders: str, target: Database, tmp_path: Path
) -> None:
    target.execute(
        "CREATE TABLE orders (id int PRIMARY KEY, customer text, amount numeric)"
    )
    expected = [(1, "ann", Decimal("7.50")), (3, "bob", Decimal(5))]
    arguments = (kafka.bootstrap, orders, target.dsn)
    with running(tmp_path, _EXAMPLES / "mirror.py", *arguments):
        wait_until(
            lambda: target.fetch("SELECT * FROM orders ORDER BY id") == expected,
            30,
            "the table is identical",
        )


def test_the_row_example_handles_each_row_once(
    kafka: KafkaServer, target: Database, topic_prefix: str, tmp_path: Path
) -> None:
    topic = f"{topic_prefix}rows"
    TopicAdmin(kafka.bootstrap).create(topic, 1)
    feed = Feed(kafka.bootstrap, topic)
    for number in (1, 2, 1, 3):
        data = {"id": number}
        message = {"timestamp": 1.5, "name": "s", "table": "processes", "data": data}
        feed.send_raw(json.dumps({**message, "hash": row_hash(data)}).encode())
    feed.flush()
    arguments = (kafka.bootstrap, topic, target.dsn)

    def rows() -> list[int]:
        if target.fetch("SELECT to_regclass('processes')") == [(None,)]:
            return []
        return [row[0]["id"] for row in target.fetch("SELECT data FROM processes")]

    with running(tmp_path, _EXAMPLES / "row_dedupe.py", *arguments):
        wait_until(lambda: 3 in rows(), 30, "the last row came")
    assert rows() == [1, 2, 3]


def test_tail_shows_each_op_in_a_line(
    kafka: KafkaServer, orders: str, tmp_path: Path
) -> None:
    command = ("-m", "consumer", "tail", orders, "--kafka", kafka.bootstrap)
    with running(tmp_path, *command) as output:
        wait_until(lambda: output.read_text().count("\n") == 5, 30, "five lines")
        text = output.read_text()
    assert re.search(
        r"\[0\] 0/10/0 Update public.orders id=1 .*amount=7\.50 \(was 10\.50\)", text
    )
    assert re.search(r"\[1\] 0/18/0 Delete public.orders id=2 customer=bob", text)


def test_a_page_links_to_every_example() -> None:
    pages = [_ROOT / "README.md", *(_ROOT / "docs").glob("*.md")]
    text = "\n".join(page.read_text("utf-8") for page in pages)
    for path in _EXAMPLES.glob("*.py"):
        assert f"examples/{path.name})" in text
