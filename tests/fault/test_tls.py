"""TLS and logins that are wrong, with real servers, and such that change in flight.

Each is found by `walstream check`, and ends `run`, or has it wait, with words of the
cause and the cure. What is renewed while it streams is no gap and no exit.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from consumer import BasicConsumer
from tests.support.deadline import wait_until
from tests.support.fixtures.postgres import Database, temporary_database
from tests.support.fixtures.tls import Secured, check
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader, TopicAdmin
from tests.support.programs.consumer_thread import Running
from tests.support.programs.polled_source import Polled
from tests.support.programs.verb import verb
from tests.support.programs.walstream import Walstream
from tests.support.servers.certificate_authority import HERE, Pair
from tests.support.servers.tls import (
    ELSEWHERE,
    KEY_PASSWORD,
    PASSWORD,
    SecureKafka,
    SecureMariadb,
)

pytestmark = pytest.mark.fault_long
WRONG = "wrong-PaSsWoRd"


@pytest.fixture(scope="module")
def kafka(secured: Secured) -> SecureKafka:
    return secured.kafka


@pytest.fixture
def database(secured: Secured) -> Iterator[Database]:
    with temporary_database(secured.postgres.server) as fresh:
        fresh.execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
        yield fresh


@dataclass(frozen=True)
class Case:
    """What is wrong, what it ends with, and words of the cause and the cure."""

    code: int
    words: tuple[str, ...]
    ends: bool = True  # by itself: not one that waits
    at_once: bool = True  # not where a server may cut before its alert is read


POSTGRES = {
    "authority": Case(2, ("certificate verify failed", "correct sslrootcert")),
    "expired": Case(2, ("certificate verify failed", "if it has expired")),
    "name": Case(2, ("does not match host name", "correct the dsn's host")),
    "password": Case(4, ("password authentication failed", "correct user")),
    "no certificate": Case(2, ("valid client certificate", "set sslcert")),
    "strange certificate": Case(2, ("alert unknown ca", "ssl_ca_file")),
    "expired certificate": Case(2, ("certificate expired", "renew sslcert")),
    "another's certificate": Case(
        4, ("authentication failed", "use the name in sslcert")
    ),
    "key's password": Case(2, ("could not load private key", "sslpassword")),
}
KAFKA = {
    "authority": Case(5, ("unknown authority", "ssl.ca.location"), ends=False),
    "expired": Case(5, ("has expired", "renew the broker's"), ends=False),
    "name": Case(5, ("is another host's", "certificate's name in"), ends=False),
    "password": Case(4, ("uthentication", "sasl.password")),
    "plain password": Case(4, ("uthentication", "sasl.password")),
    "no certificate": Case(5, ("alert", "set ssl.certificate.location"), ends=False),
    "strange certificate": Case(5, ("alert", "renew the certificate"), ends=False),
    "expired certificate": Case(5, ("alert", "renew the certificate"), ends=False),
    "key's password": Case(2, ("ssl.key.location", "ssl.key.password")),
}
MARIADB = {
    "authority": Case(2, ("certificate verify failed", "ssl_ca")),
    "expired": Case(2, ("certificate has expired", "renew the server's")),
    "name": Case(2, ("not valid for '127.0.0.1'", "correct the url's host")),
    "password": Case(4, ("Access denied", "user or password")),
    "no certificate": Case(4, ("Access denied", "user or password")),
    "no such file": Case(2, ("No such file", "correct ssl_ca")),
    "strange certificate": Case(
        2, ("alert unknown ca", "renew ssl_cert"), at_once=False
    ),
    "key's password": Case(2, ("files of TLS", "the key not encrypted")),
}


def meets(walstream: Walstream, case: Case) -> None:
    """Claim that `check` finds the case, and how `run` meets it."""
    if case.at_once:
        check(walstream, case.code, *case.words)
    walstream.start()
    if case.ends:
        walstream.ends_with(case.code, *case.words)
    else:
        for word in case.words:
            walstream.until(word)
        assert walstream.running
    assert "PaSsWoRd" not in walstream.text
    assert "pass phrase" not in walstream.text
    assert not walstream.said("check that the broker runs"), walstream.text


def shown_by(secured: Secured, what: str) -> Pair:
    """Make the server's certificate of a case."""
    hosts = (ELSEWHERE,) if what == "name" else HERE
    return secured.ours.sign("server", *hosts, expired=what == "expired")


def borne(secured: Secured, what: str) -> Pair:
    """Make the client's certificate of a case."""
    authority = secured.stranger if what.startswith("strange") else secured.ours
    return authority.sign(
        "somebody" if what.startswith("another") else "bearer",
        expired=what.startswith("expired"),
        password=KEY_PASSWORD if what.startswith("key") else "",
    )


@pytest.mark.parametrize("what", POSTGRES)
def test_wrong_logins_of_postgres(
    secured: Secured,
    database: Database,
    runs: Runs,
    what: str,
) -> None:
    given: dict[str, str] = {}
    if what == "authority":
        given["sslrootcert"] = str(secured.stranger.path)
    elif what == "password":
        given["password"] = WRONG
    elif what == "name":
        given |= {"host": ELSEWHERE, "hostaddr": HERE[1]}
    elif what != "expired":
        given |= {"user": "bearer", "password": ""}
    if ("certificate" in what and not what.startswith("no ")) or "key" in what:
        pair = borne(secured, what)
        given |= {"sslcert": str(pair.certificate), "sslkey": str(pair.key)}
    walstream = runs(
        secured.postgres.dsn(database.name, **given), bootstrap=secured.kafka.bootstrap
    )
    with ExitStack() as stack:
        if what == "expired":
            stack.enter_context(secured.postgres.showing(shown_by(secured, what)))
        meets(walstream, POSTGRES[what])


@pytest.mark.parametrize("what", KAFKA)
def test_wrong_logins_of_kafka(
    secured: Secured,
    database: Database,
    runs: Runs,
    what: str,
) -> None:
    producers: dict[str, Callable[[], dict[str, Any]]] = {
        "authority": lambda: secured.kafka.login(listener="STRANGE"),
        "expired": lambda: secured.kafka.login(listener="EXPIRED"),
        "name": lambda: secured.kafka.login(listener="ELSEWHERE"),
        "password": lambda: secured.kafka.login(password=WRONG),
        "plain password": lambda: secured.kafka.login("PLAIN", password=WRONG),
        "no certificate": lambda: secured.kafka.at("MUTUAL"),
        "key's password": lambda: secured.kafka.bearing(borne(secured, what), WRONG),
    }
    producer = (
        producers[what]()
        if what in producers
        else secured.kafka.bearing(borne(secured, what))
    )
    meets(runs(database.dsn, sink={"producer": producer}), KAFKA[what])


@pytest.mark.parametrize("what", MARIADB)
def test_wrong_logins_of_mariadb(
    secure_mariadb: SecureMariadb,
    secured: Secured,
    tmp_path: Path,
    topic_prefix: str,
    what: str,
) -> None:
    given: dict[str, Any] = {}
    if what == "authority":
        given["authority"] = secured.stranger.path
    elif what == "no such file":
        given["authority"] = tmp_path / "none.pem"
    elif what == "password":
        given["password"] = WRONG
    elif "certificate" in what or "key" in what:
        given |= {"user": "bearer", "password": ""}
        if what != "no certificate":
            pair = borne(secured, what)
            given |= {"ssl_cert": pair.certificate, "ssl_key": pair.key}
    polled = Polled(
        secure_mariadb.url(**given),
        secured.kafka.bootstrap,
        tmp_path / "polled",
        topic_prefix,
        tables={"t": {"primary_key": "id"}},
    )
    with ExitStack() as stack:
        stack.callback(polled.close)
        if what in {"expired", "name"}:
            stack.enter_context(secure_mariadb.showing(shown_by(secured, what)))
        meets(polled, MARIADB[what])


@pytest.mark.parametrize("what", ["STRANGE", "EXPIRED", "ELSEWHERE", "password"])
def test_a_consumer_waits_and_says_why(
    secured: Secured, caplog: pytest.LogCaptureFixture, topic_prefix: str, what: str
) -> None:
    TopicAdmin(secured.kafka.bootstrap).create(f"{topic_prefix}t")
    wrong = secured.kafka.login(password=WRONG) if what == "password" else {}
    consumer = BasicConsumer(
        print,
        group=topic_prefix,
        topics=[f"{topic_prefix}t"],
        kafka=wrong or secured.kafka.login(listener=what),
    )
    # librdkafka says the one or the other, and the consumer the first of it alone
    words = ["verify that ssl.ca.location", "certificate verify failed"]
    words = ["uthentication failed"] if wrong else words
    with consumer:
        running = Running(consumer)
        wait_until(
            lambda: running.error or any(word in caplog.text for word in words),
            30,
            "it says why",
        )
        assert running.error is None
    running.join()
    assert "PaSsWoRd" not in caplog.text


def test_certificates_are_renewed_in_flight(
    secured: Secured,
    database: Database,
    runs: Runs,
    reader: Reader,
) -> None:
    """The server's own and the client's: refused meanwhile, then no gap, no exit."""
    ours, stranger = secured.ours, secured.stranger
    pair, good = ours.sign("bearer"), ours.sign("bearer")
    files = {"sslcert": str(pair.certificate), "sslkey": str(pair.key)}
    dsn = secured.postgres.dsn(database.name, user="bearer", password="", **files)
    walstream = runs(dsn, sink={"producer": secured.kafka.bearing(pair)})
    walstream.start().streaming().streaming_said()
    database.execute("INSERT INTO t VALUES (2)")
    reader.count(1)

    secured.postgres.show(
        ours.sign("postgres", *HERE)
    )  # renewed in time: nobody notices
    secured.postgres.cut()
    database.execute("INSERT INTO t VALUES (3)")
    reader.count(2)

    with secured.postgres.showing(ours.sign("postgres", *HERE, expired=True)):
        secured.postgres.cut()
        walstream.until("certificate verify failed").until("starting it again")
        database.execute("INSERT INTO t VALUES (4)")
    reader.count(3)

    pair.replace(stranger.sign("bearer"))  # the client's own
    secured.postgres.cut()
    walstream.until("alert unknown ca")
    database.execute("INSERT INTO t VALUES (5)")
    pair.replace(good)
    reader.count(4)
    assert walstream.running
    assert walstream.terminate() == 0


def test_a_certificate_of_mariadb_is_renewed_in_flight(
    secure_mariadb: SecureMariadb, secured: Secured, tmp_path: Path, topic_prefix: str
) -> None:
    secure_mariadb.database.execute("DELETE FROM t")
    polled = Polled(
        secure_mariadb.url(),
        secured.kafka.bootstrap,
        tmp_path / "polled",
        topic_prefix,
        tables={"t": {"primary_key": "id"}},
    )
    with ExitStack() as stack:
        stack.callback(polled.close)
        secure_mariadb.database.execute("INSERT INTO t VALUES (1)")
        polled.start().polling()
        with polled.reader() as reader:
            reader.count(1)
            expired = secured.ours.sign("mariadb", *HERE, expired=True)
            with secure_mariadb.showing(expired):
                secure_mariadb.database.execute("INSERT INTO t VALUES (2)")
                polled.until("certificate has expired").until("starting it again")
            reader.count(2)
        assert polled.running
        assert polled.terminate() == 0


def test_logins_of_kafka_are_renewed_by_a_reload(
    secured: Secured,
    database: Database,
    runs: Runs,
    reader: Reader,
    tmp_path: Path,
) -> None:
    file = tmp_path / "password"
    file.write_text(PASSWORD)
    pair = secured.ours.sign("bearer")
    login = secured.kafka.login(password=f"${{file:{file}}}")
    walstream = runs(
        database.dsn,
        sink={"producer": login},
        others={
            "mutual": {
                "topic": f"{runs.prefix}mutual.{{table}}",
                "producer": secured.kafka.bearing(pair),
            }
        },
    )
    walstream.start().streaming().streaming_said()
    try:
        database.execute("INSERT INTO t VALUES (2)")
        reader.count(2)
        secured.kafka.alter("tWo-PaSsWoRd")
        file.write_text("tWo-PaSsWoRd")
        pair.replace(secured.ours.sign("bearer"))
        first = walstream.worker_pid()
        done = verb(walstream.configuration, "reload")
        assert done.returncode == 0, done.stderr
        database.execute("INSERT INTO t VALUES (3)")
        reader.count(4)
        assert walstream.worker_pid() != first
        assert walstream.terminate() == 0
    finally:
        secured.kafka.alter(PASSWORD)
    assert "PaSsWoRd" not in walstream.text
