"""Passwords that a command prints, on a server that wants one for each session."""

import sys
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database, OwnPostgres
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.polled_source import Polled

_PRINTS = """
import sys
word, count = open(sys.argv[1]).read(), sys.argv[1] + ".count"
open(count, "a").write(".")
print(word)
"""


class Tokens:
    """A server that wants a password, and a command that prints the one of now."""

    def __init__(self, own_postgres: OwnPostgres, folder: Path) -> None:
        self.server = own_postgres(18)
        self.database = Database(self.server)
        rules = self.server.data / "pg_hba.conf"
        rules.write_text(
            f"host all app 127.0.0.1/32 scram-sha-256\n{rules.read_text()}"
        )
        self.database.execute("CREATE ROLE app SUPERUSER LOGIN")
        self._word, script = folder / "word", folder / "token.py"
        script.write_text(_PRINTS)
        self.command = [sys.executable, str(script), str(self._word)]
        self.rotate("one-word")
        self.database.execute("SELECT pg_reload_conf()")

    def rotate(self, word: str) -> None:
        """Have server and command agree on another, and cut who came by the last."""
        self.database.execute(f"ALTER ROLE app PASSWORD '{word}'")
        self._word.write_text(word)
        self.database.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE usename = 'app'"
        )

    def printed(self) -> int:
        """Tell how often."""
        return len(self._word.with_name("word.count").read_text())


@pytest.fixture
def tokens(own_postgres: OwnPostgres, tmp_path: Path) -> Tokens:
    return Tokens(own_postgres, tmp_path)


def test_each_session_of_a_stream_has_the_password_that_is_printed_then(
    tokens: Tokens, runs: Runs, reader: Reader
) -> None:
    tokens.database.execute(
        "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)"
    )
    walstream = runs(
        make_conninfo(tokens.server.dsn(), user="app"),
        source={"backfill": "initial", "password_command": tokens.command},
    )
    walstream.start().until("streaming", 150)
    reader.count(1)  # the driver ran it too
    before = tokens.printed()
    assert before > 1
    tokens.rotate("two-words")
    tokens.database.execute("INSERT INTO t VALUES (2)")
    reader.count(2)
    assert tokens.printed() > before
    assert walstream.terminate() == 0
    assert "-word" not in walstream.text


def test_each_session_of_a_poll_has_it_too(
    tokens: Tokens, kafka: KafkaServer, tmp_path: Path, topic_prefix: str
) -> None:
    tokens.database.execute(
        "CREATE TABLE t (id bigint PRIMARY KEY); INSERT INTO t VALUES (1)"
    )
    host = conninfo_to_dict(tokens.server.dsn())
    url = f"postgresql+psycopg://app@127.0.0.1:{host['port']}/{host['dbname']}"
    polled = Polled(
        url,
        kafka.bootstrap,
        tmp_path / "polled",
        topic_prefix,
        source={"password_command": tokens.command},
        tables={"public.t": {"primary_key": "id"}},
    )
    polled.once()
    tokens.rotate("two-words")
    tokens.database.execute("INSERT INTO t VALUES (2)")
    before = tokens.printed()
    polled.once()
    with polled.reader() as reader:
        reader.count(2)
    assert tokens.printed() > before
