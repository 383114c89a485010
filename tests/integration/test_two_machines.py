"""Extraction and delivery on two machines, as docs/chaining.md has them configured."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.fixtures.kafka import OwnKafka
from tests.support.fixtures.postgres import PostgresServer, temporary_database
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.relay import Shipped, shown

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]
_DOCS = Path(__file__).parents[2] / "docs"
_EXAMPLES = _DOCS / "examples"


def test_the_document_names_both_configurations() -> None:
    text = (_DOCS / "chaining.md").read_text("utf-8")
    for name in ("extraction.toml", "delivery.toml"):
        example = (_EXAMPLES / name).read_text("utf-8")
        assert f"```toml\n{example}```" in text


def test_two_processes_on_two_addresses_bring_every_change(
    postgres18: PostgresServer, own_kafka: OwnKafka, tmp_path: Path
) -> None:
    near, far = own_kafka(host="127.0.0.1"), own_kafka(host="127.0.0.2")
    with ExitStack() as stack:
        database = stack.enter_context(temporary_database(postgres18))
        database.execute("CREATE TABLE orders (id int PRIMARY KEY, big int8)")
        database.execute("CREATE TABLE customers (id int PRIMARY KEY)")
        environment = {
            "WALSTREAM_DSN": database.dsn,
            "WALSTREAM_NEAR": near.bootstrap,
            "WALSTREAM_FAR": far.bootstrap,
        }

        def run(name: str, **options: Any) -> Shipped:
            made = Shipped(
                database.dsn,
                near.bootstrap,
                tmp_path / name,
                "",
                environment=environment,
                example=_EXAMPLES / f"{name}.toml",
                **options,
            )
            return stack.enter_context(made)

        extraction = run(
            "extraction", source={"slot": database.name, "backfill": "never"}
        )
        delivery = run("delivery")
        assert extraction.pid != delivery.pid
        database.execute(
            "INSERT INTO orders SELECT n, 9007199254740993 + n"
            " FROM generate_series(1, 200) n"
        )
        database.execute("INSERT INTO customers VALUES (1)")
        database.execute("UPDATE orders SET big = 0 WHERE id = 7")
        database.execute("DELETE FROM orders WHERE id = 8")
        database.execute("TRUNCATE customers")
        here = stack.enter_context(Reader(near.bootstrap, "public."))
        there = stack.enter_context(Reader(far.bootstrap, "public."))
        here.until(lambda records: len(records) >= 207)
        there.until(lambda records: len(records) >= 207)
        assert delivery.terminate() == 0, delivery.text
        assert extraction.terminate() == 0, extraction.text
        assert len(here.read()) == len(there.read()) == 207
        for topic in ("public.orders", "public.customers"):
            assert shown(there.records, topic) == shown(here.records, topic)
