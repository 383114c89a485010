"""A mirror becomes identical to its source, through kills of producer and consumer."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

import pytest

from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database, PostgresServer, temporary_database
from tests.support.fixtures.walstream import Stream, streamed
from tests.support.loads.mirrored import NAMES, TABLES, OddLoad, contents, fill, tpc_b
from tests.support.programs.mirror import Mirror

pytestmark = pytest.mark.fault

_PATIENCE_S = 240


def test_a_mirror_is_identical_after_kills_of_both(
    newest_postgres: PostgresServer, kafka: KafkaServer, tmp_path: Path
) -> None:
    with followed(newest_postgres, kafka, tmp_path) as pair:
        kill_cycles(pair, tmp_path, kills=1, accounts=300, more=150)


@pytest.mark.fault_long
@pytest.mark.takes(600)
def test_a_mirror_is_identical_after_many_kills_of_both(
    postgres: PostgresServer, kafka: KafkaServer, tmp_path: Path
) -> None:
    with followed(postgres, kafka, tmp_path) as pair:
        kill_cycles(pair, tmp_path, kills=10, accounts=10_000, more=400)


@dataclass(frozen=True)
class Pair:
    """A source, the walstream that streams it, and the mirror that follows."""

    stream: Stream
    target: Database
    mirror: Mirror


@contextmanager
def followed(
    server: PostgresServer, kafka: KafkaServer, folder: Path
) -> Iterator[Pair]:
    prefix = f"test_{token_hex(6)}."
    topics = [f"{prefix}public.{name}" for name in NAMES]
    by_org = {"name": f"{prefix}public.moved", "partition_key": ["org"]}
    sink = {"topic_partitions": 4, "topics": {"public.moved": by_org}}
    with (
        streamed(
            server, kafka, folder, before=TABLES, prefix=prefix, sink=sink
        ) as stream,
        temporary_database(server) as target,
    ):
        target.execute(TABLES)
        with Mirror(target.dsn, kafka.bootstrap, topics, folder) as mirror:
            yield Pair(stream, target, mirror)


def kill_cycles(
    pair: Pair, folder: Path, *, kills: int, accounts: int, more: int
) -> None:
    source, walstream, mirror = pair.stream.database, pair.stream.walstream, pair.mirror
    with OddLoad(source, seed=7, pause_s=0.01) as load:
        fill(source, accounts)
        for _ in range(kills):
            tpc_b(source, folder, accounts=accounts, count=more)
            load.wait_for_more(more)
            walstream.kill()
            load.wait_for_more(more // 4)
            mirror.kill()
            walstream.start()
            mirror.start()
            load.wait_for_more(more)
        tpc_b(source, folder, accounts=accounts, count=more)
    expected = contents(source)
    # one may just have been truncated by the load
    assert sum(map(bool, expected.values())) >= len(expected) - 1
    mirror.until(
        lambda: contents(pair.target) == expected, _PATIENCE_S, "it catches up"
    )
    assert mirror.terminate() == 0, mirror.text
