"""A mirror of whole transactions: at every moment it is as the source once was."""

from pathlib import Path

import pytest

from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import PostgresServer, temporary_database
from tests.support.fixtures.walstream import streamed
from tests.support.loads.bank import (
    OPEN,
    TABLES,
    Transfers,
    Witness,
    contents,
)
from tests.support.programs.mirror import Mirror

MANY = pytest.param(20, marks=pytest.mark.fault_long)


@pytest.mark.takes(200)
@pytest.mark.parametrize("kills", [2, MANY])
def test_what_must_hold_holds_at_every_moment_though_both_are_killed(
    newest_postgres: PostgresServer,
    kafka: KafkaServer,
    tmp_path: Path,
    topic_prefix: str,
    kills: int,
) -> None:
    told = f"{topic_prefix}told"
    sink = {
        "topic_partitions": 8,
        "txinfo": told,
        "txinfo_form": "walstream",
        "resolved": "200ms",
        "on_truncate": "send",
    }
    with (
        streamed(
            newest_postgres,
            kafka,
            tmp_path,
            before=TABLES + OPEN,
            prefix=topic_prefix,
            sink=sink,
            source={"backfill": "initial"},
        ) as stream,
        temporary_database(newest_postgres) as target,
    ):
        target.execute(TABLES)
        topics = [f"{topic_prefix}*"]
        flags = ("--transactions", told, "--memory", "1")
        mirror = Mirror(target.dsn, kafka.bootstrap, topics, tmp_path, *flags)
        with mirror, Witness(target) as witness:
            with Transfers(stream.database, seed=11) as load:
                for _ in range(kills):
                    load.wait_for_more(150)
                    stream.walstream.kill()
                    load.wait_for_more(50)
                    mirror.kill()
                    stream.walstream.start()
                    mirror.start()
                    load.wait_for_more(150)
            expected = contents(stream.database)
            mirror.until(
                lambda: witness.failures or contents(target) == expected,
                120,
                "it catches up",
            )
            assert not witness.failures
            assert mirror.terminate() == 0, mirror.text
        assert witness.looks > 20
        assert len(witness.seen) > 10
