"""Kills of walstream, outages of the registry, and other columns, while a table grows.

Rows commit late in any run. No row is missing, each can be read by its schema, and of
those of a range alone some come again.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from consumer import RowMessage, SchemaRegistry, verify
from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.mariadb import Mariadb, OwnMariadb
from tests.support.loads.mariadb import Load, create
from tests.support.programs.polled_source import Polled
from tests.support.servers.apicurio import LocalRegistry

pytestmark = pytest.mark.fault
LONGEST_S: Final = 150.0
AWAY_S: Final = 5.0
MOST: Final = 10_000  # rows of a range without Spark


def raw(value: Any) -> Any:
    return value


@pytest.fixture
def database(own_mariadb: OwnMariadb) -> Mariadb:
    server = own_mariadb()
    Mariadb(server).execute("CREATE DATABASE shop")
    found = Mariadb(server, "shop")
    create(found, "t")
    return found


@pytest.fixture
def polled(
    database: Mariadb,
    kafka: KafkaServer,
    topic_prefix: str,
    tmp_path: Path,
    own_registry: LocalRegistry,
) -> Iterator[Polled]:
    made = Polled(
        database.url,
        kafka.bootstrap,
        tmp_path,
        topic_prefix,
        source={"poll_interval": "50ms"},
        sink={
            "topic_partitions": 1,
            "encoding": "avro",
            "registry": {"url": own_registry.url},
        },
        tables={"t": {}},
    )
    yield made
    made.close()


def stay_away(seconds: float) -> None:
    end = time.monotonic() + seconds
    wait_until(lambda: time.monotonic() > end, seconds + 10, "it was away so long")


def test_no_row_is_missing_over_kills_outages_and_columns(
    database: Mariadb, polled: Polled, own_registry: LocalRegistry
) -> None:
    with polled.reader(raw) as reader:
        with Load(database, "t", seed=3) as load:
            polled.start().polling()
            load.wait_for_more(200)
            reader.until(bool)
            own_registry.kill()  # what it knows flows on, also behind a kill
            known = reader.ends()
            load.wait_for_more(100)
            polled.kill()
            polled.start().polling()
            wait_until(lambda: reader.ends() > known + 50, LONGEST_S, "rows flow on")
            polled.kill()
        # no transaction is open: it would wait for those, and others for it
        database.execute("ALTER TABLE t ADD w DATE NOT NULL DEFAULT '2020-02-29'")
        with Load(database, "t", seed=4) as load:
            polled.start().until("waiting for the schema registry")
            load.wait_for_more(100)
            stay_away(AWAY_S)
            polled.kill()
            polled.start()
            own_registry.start()
            load.wait_for_more(100)
            polled.polling()
            polled.kill()
            polled.start()
            load.wait_for_more(100)
    there = {key for (key,) in database.fetch("SELECT id FROM t")}
    schemas = SchemaRegistry({"url": own_registry.url})
    found: list[RowMessage] = []

    with polled.reader(raw) as reader:

        def arrived() -> bool:
            news = reader.read()[len(found) :]
            found.extend([RowMessage.of(one.value, schemas) for one in news])
            return there <= {one.data["id"] for one in found}

        wait_until(arrived, LONGEST_S, "all rows arrive")
    schemas.close()
    assert polled.terminate() == 0
    assert all(map(verify, found))
    assert {one.data["id"] for one in found} == there
    assert any("w" in one.data for one in found)
    assert any("w" not in one.data for one in found)
    assert _repeats(found) <= 4 * MOST
    shapes = {(one.data["id"], "w" in one.data): one.hash for one in found}
    assert all(one.hash == shapes[one.data["id"], "w" in one.data] for one in found)


def _repeats(found: list[RowMessage]) -> int:
    return len(found) - len({one.data["id"] for one in found})
