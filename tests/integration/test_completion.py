"""Slots, tables and topics that servers have are completed."""

import pytest

from tests.support.fixtures.postgres import Database
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import TopicAdmin
from tests.support.programs.shell import completed

pytestmark = [pytest.mark.same_on_15]


def test_names_that_servers_know_are_offered(database: Database, runs: Runs) -> None:
    database.execute(
        "CREATE SCHEMA shop; CREATE TABLE shop.orders (id int PRIMARY KEY);"
        " CREATE TABLE shop.lines (id int PRIMARY KEY); CREATE TABLE other (id int)"
    )
    walstream = runs(database.dsn, source={"tables": ["shop.*"]})
    with walstream:
        assert walstream.terminate() == 0
    file = f"-c {walstream.configuration}"
    assert completed(f"walstream backfill {file} ") == ["shop.lines", "shop.orders"]
    assert completed(f"walstream backfill {file} shop.o") == ["shop.orders"]
    slot = walstream.slot
    assert completed(f"walstream slots drop {file} {slot[:-1]}") == [slot]

    TopicAdmin(walstream.bootstrap).create(f"{walstream.prefix}beside")
    topics = [f"{walstream.prefix}{name}" for name in ("beside", "shop.lines")]
    for where in (file, f"--brokers {walstream.bootstrap}"):
        found = completed(f"walstream tail {where} {walstream.prefix}")
        assert set(topics) <= set(found)
