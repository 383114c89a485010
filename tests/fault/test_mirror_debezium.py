"""A mirror of Debezium's records becomes identical, through kills of both."""

from pathlib import Path
from secrets import token_hex
from typing import Any, Final

import pytest

from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import PostgresServer, temporary_database
from tests.support.fixtures.walstream import streamed
from tests.support.loads.typed import NAMES, TABLES, TypedLoad, contents
from tests.support.oracles.topic_reader import TopicAdmin
from tests.support.programs.mirror import Mirror

pytestmark = pytest.mark.fault

_PATIENCE_S: Final = 240
NAMED: Final[dict[str, dict[str, Any]]] = {
    "header": {},
    "block": {"transaction_block": True, "position_header": False},
}


@pytest.mark.parametrize("named", NAMED)
def test_a_mirror_is_identical_after_kills_of_both(
    newest_postgres: PostgresServer, kafka: KafkaServer, tmp_path: Path, named: str
) -> None:
    kill_cycles(newest_postgres, kafka, tmp_path, named, (2, 60))


@pytest.mark.fault_long
@pytest.mark.takes(600)
@pytest.mark.parametrize("named", NAMED)
def test_a_mirror_is_identical_after_many_kills_of_both(
    postgres: PostgresServer, kafka: KafkaServer, tmp_path: Path, named: str
) -> None:
    kill_cycles(postgres, kafka, tmp_path, named, (12, 300))


def kill_cycles(
    server: PostgresServer,
    kafka: KafkaServer,
    folder: Path,
    named: str,
    cycles: tuple[int, int],
) -> None:
    kills, more = cycles  # so many transactions between two kills
    prefix = f"test_{token_hex(6)}."
    topics = [f"{prefix}public.{name}" for name in NAMES]
    TopicAdmin(kafka.bootstrap).create(f"{prefix}public.wiped", 1)  # for its TRUNCATEs
    own = {"name": "app", "schemas": True, "interval": "string", **NAMED[named]}
    sink = {
        "format": "debezium",
        "debezium": own,
        "topic_partitions": 4,
        "on_truncate": "send",
    }
    made: dict[str, Any] = {"prefix": prefix, "sink": sink, "decode": bytes}
    source = {"backfill": "initial"}
    before = TABLES
    if named == "block":  # no name tells copies of a backfilled row without a key apart
        before += "TRUNCATE loose;"
    with (
        streamed(server, kafka, folder, before=before, source=source, **made) as stream,
        temporary_database(server) as target,
    ):
        target.execute(TABLES)
        target.execute("TRUNCATE loose, wiped")
        walstream = stream.walstream
        with (
            Mirror(target.dsn, kafka.bootstrap, topics, folder) as mirror,
            TypedLoad(stream.database, seed=7, pause_s=0.01) as load,
        ):
            walstream.until("backfill ended")
            for _ in range(kills):
                load.wait_for_more(more)
                walstream.kill()
                load.wait_for_more(more // 4)
                mirror.kill()
                walstream.start()
                mirror.start()
            load.wait_for_more(more)
            load.leaving.set()
            load.__exit__(None, None, None)
            expected = contents(stream.database)
            assert expected["typed"]
            assert expected["loose"]
            mirror.until(
                lambda: contents(target) == expected, _PATIENCE_S, "it catches up"
            )
            assert mirror.terminate() == 0, mirror.text
