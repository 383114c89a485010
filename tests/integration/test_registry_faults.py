"""A registry that hangs, answers nonsense, or is another: what sinks do meanwhile."""

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader, TopicAdmin
from tests.support.programs.verb import verb
from tests.support.programs.walstream import Walstream, toml
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
            walstream.until("waiting for the schema registry")  # before it times out
        began = time.monotonic()
        walstream.terminate()
        assert time.monotonic() - began < 18  # less than a drain may take
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


def test_ids_that_a_detached_sink_learned_are_known_when_it_is_back(  # noqa: PLR0913, PLR0917 - fixtures
    database: Database,
    run: Run,
    faulty: FaultyRegistry,
    records: Reader,
    kafka: KafkaServer,
    topic_prefix: str,
) -> None:
    """The registry is away by then; the source's own worker never asked for them."""
    admin, topic = TopicAdmin(kafka.bootstrap), f"{topic_prefix}public.t"
    admin.create(topic, 1, max_message_bytes="4000")
    walstream = run()
    walstream.others = {"other": {"topic": f"other_{topic_prefix}{{table}}"}}
    with walstream:
        database.execute("INSERT INTO t VALUES (2, repeat('x', 6000))")
        walstream.until("streaming to a detached sink", 60)
        database.execute("ALTER TABLE t ADD w int")
        database.execute("INSERT INTO t VALUES (3, 'b', 3)")
        admin.configure(topic, "max.message.bytes", "200000")
        walstream.until("sink is back in the source's stream", 90)
        records.count(2)
        faulty.stop()
        database.execute("INSERT INTO t VALUES (4, 'b', 4)")
        found = records.count(3)
        assert found[2].value[:5] == found[1].value[:5]
        assert walstream.terminate() == 0


def test_check_asks_a_registry_though_the_server_is_away(
    run: Run, faulty: FaultyRegistry
) -> None:
    walstream = run()
    walstream.dsn = "host=127.0.0.1 port=1 dbname=postgres"
    walstream.configuration.write_text(toml(walstream.document()), "utf-8")

    def said() -> list[str]:
        told = json.loads(verb(walstream.configuration, "check", "--json").stdout)
        (source,) = told["sources"]
        return [one["what"] for one in source["findings"] if one["code"] == "registry"]

    assert said() == []
    faulty.login = ("me", "pw")
    (refused,) = said()
    assert "HTTP 401" in refused
    faulty.stop()
    (away,) = said()
    assert "refused" in away
