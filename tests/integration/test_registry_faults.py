"""A registry that hangs, answers nonsense, or is another: what sinks do meanwhile."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.verb import verb
from tests.support.programs.walstream import Walstream
from tests.support.servers.faulty_registry import FaultyRegistry, faulty_registry

TABLE = "CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'a')"


@pytest.fixture
def faulty() -> Iterator[FaultyRegistry]:
    with faulty_registry() as registry:
        yield registry


Run = Callable[..., Walstream]


@pytest.fixture
def run(
    database: Database, runs: Runs, topic_prefix: str, faulty: FaultyRegistry
) -> Run:
    database.execute(TABLE)

    def made(**told: Any) -> Walstream:
        source = {"backfill": "never", **told.pop("source", {})}
        sink = {
            "format": "debezium",
            "encoding": "avro",
            "topic": topic_prefix + "{schema}.{table}",
            "topic_partitions": 1,
            "registry": {"url": faulty.url, **told.pop("registry", {})},
            **told.pop("sink", {}),
        }
        return runs(database.dsn, sink=sink, source=source, **told)

    return made


@pytest.fixture
def records(kafka: KafkaServer, topic_prefix: str) -> Iterator[Reader]:
    with Reader(kafka.bootstrap, topic_prefix, lambda value: value) as reader:
        yield reader


@pytest.mark.parametrize("backfill", ["never", "initial"])
def test_one_that_never_answers_holds_up_nothing_but_records(
    database: Database, run: Run, faulty: FaultyRegistry, records: Reader, backfill: str
) -> None:
    """PostgreSQL hears of walstream all the time, and an end is an end."""
    faulty.slow = threading.Event()
    client = {"timeout": "100"}
    walstream = run(source={"backfill": backfill}, registry={"client": client})
    with contextlib.closing(walstream):
        walstream.start()
        if backfill == "never":
            walstream.streaming()
        database.execute("INSERT INTO t VALUES (2, 'b')")
        wait_until(lambda: faulty.asked, 30, "it is asked")
        if backfill == "never":
            wait_until(lambda: heard(database) > time.time(), 30, "it is heard of")
        began = time.monotonic()
        walstream.terminate()
        assert time.monotonic() - began < 40
        faulty.slow.set()
        faulty.slow = None
        walstream.start()
        records.until(lambda found: len(found) >= (1 if backfill == "never" else 2))
        assert walstream.terminate() == 0


def heard(database: Database) -> float:
    """Return when PostgreSQL heard of the stream last, and some seconds more."""
    ((when,),) = database.fetch(
        "SELECT extract(epoch FROM max(reply_time)) FROM pg_stat_replication WHERE "
        "pid = (SELECT active_pid FROM pg_replication_slots WHERE slot_name = %s)",
        database.name,
    )
    return float(when) + 2


JSON = "application/vnd.schemaregistry.v1+json"
READ_ONLY = b'{"error_code": 42205, "message": "read-only"}'
ANSWERS: dict[str, tuple[int, bytes, str]] = {
    "proxy": (200, b"<html>me:secret-pw</html>", "text/html"),
    "another path": (404, b'{"error_code": 404, "message": "Not Found"}', JSON),
    "login": (403, b"<html>secret-pw</html>", "text/html"),
    "read only": (422, READ_ONLY, JSON),
}


@pytest.mark.parametrize("answer", list(ANSWERS))
def test_what_is_no_answer_is_waited_for(
    database: Database, run: Run, faulty: FaultyRegistry, records: Reader, answer: str
) -> None:
    """And neither log, nor status, nor state folder has the login."""
    faulty.always = ANSWERS[answer]
    url = faulty.url.replace("http://", "http://me:secret-pw@")
    walstream = run(registry={"url": url}, top={"log_level": "debug"})
    with contextlib.closing(walstream):
        walstream.start().streaming()
        database.execute("INSERT INTO t VALUES (2, 'b')")
        walstream.until("waiting for the schema registry")
        asked = len(faulty.asked)
        status = verb(walstream.configuration, "status", "--json").stdout
        wait_until(lambda: len(faulty.asked) > asked + 5, 30, "it is asked again")
        assert len(walstream.said("waiting for the schema registry")) <= 2  # key, value
        faulty.always = None
        records.count(1)
        faulty.always = ANSWERS[answer]
        walstream.kill()
        walstream.start().streaming()
        database.execute("INSERT INTO t VALUES (3, 'b')")
        records.count(2)
        files = [one for one in walstream.state.rglob("*") if one.is_file()]
        kept = b"".join(one.read_bytes() for one in files)
        for text in (walstream.text, status, kept.decode("latin-1")):
            assert "secret-pw" not in text
        assert walstream.terminate() == 0
