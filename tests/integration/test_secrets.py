"""Secrets, planted wherever one goes, show nowhere: at debug, in every verb and fault.

The claim is as good as its search, so each way in which something may show is tried
with a secret that does.
"""

import base64
import gzip
import http.client
import os
import pickle
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import Integer

from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import OwnKafka
from tests.support.fixtures.postgres import Database, OwnPostgres
from tests.support.programs.canary import Canaries, Watch
from tests.support.programs.verb import Done, verb
from tests.support.programs.walstream import Walstream, toml
from walstream.config import load
from walstream.kafka.topic import Topic
from walstream.sources.postgres.backfill.task_factory import TaskSnapshot, chunk_task
from walstream.sources.sql.database.shape import SqlColumn, SqlTableShape
from walstream.sources.sql.task_factory import PollOrder
from walstream.testing.servers import LocalKafka, LocalPostgres
from walstream.testing.servers.port import HOST, free_port

_PLAIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_TABLES: Final = (
    "CREATE TABLE item (id int PRIMARY KEY, n bigint, card text);"
    " INSERT INTO item SELECT i, i, 'card ' || i FROM generate_series(1, 200) AS i;"
    " CREATE TABLE old (id int PRIMARY KEY, v text); INSERT INTO old VALUES (1, 'a')"
)
_VERBS: Final = (
    ("check",),
    ("check", "--json"),
    ("config",),
    ("status",),
    ("status", "--json"),
    ("positions", "show"),
    ("positions", "show", "--json"),
    ("slots",),
    ("slots", "--json"),
    ("debug", "on"),
)
_IN_TROUBLE: Final = (("check",), ("status",), ("positions", "show"), ("slots",))
_PAGES: Final = ("/", "/health", "/ready", "/status", "/stats", "/metrics", "/nothing")


_CHILD: Final = """
import sys, tempfile
file = tempfile.TemporaryFile()
file.write(sys.stdin.buffer.readline())
file.flush()
sys.stdin.read()
"""


def test_the_search_finds_a_secret_however_it_is_spelt() -> None:
    canaries = Canaries()
    plain = canaries.plant("here").encode()
    task = b"\x80\x05 a pickled task " + plain + b" and more of it"
    lines = base64.encodebytes(b"x" * 50 + plain + b"x" * 90)
    assert b"\n" in lines.strip()
    for spelt in (
        plain,
        *(b'{"event": "c\\n' + base64.b64encode(b"x" * n + task) for n in range(3)),
        *(b"word/" * n + base64.b64encode(task) + b"word" for n in range(4)),
        base64.urlsafe_b64encode(b"\xff\xfe" * 9 + task),
        lines,
        task.hex().encode(),
        plain.decode().encode("utf-16"),
        b"x" + gzip.compress(task),
        zlib.compress(task),
        base64.b64encode(zlib.compress(task)),
        base64.b64encode(base64.b64encode(task)),
    ):
        assert canaries.found(b"before " + spelt + b" after") == {"here"}, spelt
    for clean in (task.replace(plain, b"***"), b"", base64.b64encode(b"x" * 99)):
        assert not canaries.found(clean)


def _seen(watch: Watch, canaries: Canaries, kind: str) -> bool:
    return bool(canaries.found(*watch.of(kind)))


def test_the_watch_sees_what_a_process_shows(tmp_path: Path) -> None:
    canaries = Canaries()
    shown = {name: canaries.plant(name) for name in ("argv", "environ", "given")}
    deleted, temporary, closed = map(canaries.plant, ("deleted", "temporary", "closed"))
    given = f"GIVEN={shown['given']}"
    with Watch(tmp_path, [given]) as watch:
        (tmp_path / "open").write_text(temporary)
        (tmp_path / "closed").mkdir(mode=0o700)
        (tmp_path / "closed" / "file").write_text(closed)
        child = subprocess.Popen(
            [
                *(sys.executable, "-c"),
                _CHILD,
                shown["argv"],
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={
                **os.environ,
                **watch.environment,
                "SHOWN": base64.b64encode(shown["environ"].encode()).decode(),
                "GIVEN": shown["given"],
            },
        )
        assert child.stdin is not None
        child.stdin.write(deleted.encode() + b"\n")
        child.stdin.flush()
        # it may be seen before it holds anything
        for kind in ("deleted", "temporary", "argv", "environ"):
            wait_until(partial(_seen, watch, canaries, kind), 30, f"{kind} is seen")
        child.communicate()
    for kind in ("argv", "environ", "deleted", "temporary"):
        assert canaries.found(*watch.of(kind)) == {kind}
    found = canaries.found_below(tmp_path)
    assert found == {
        str(tmp_path / "open"): {"temporary"},
        str(tmp_path / "closed" / "file"): {"closed"},
    }


@dataclass
class Everything(Walstream):
    """A run with every kind of source; its document is the test's."""

    written: dict[str, Any] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        return self.written


@dataclass
class Site:
    """Servers that ask for passwords, and the configuration that has them."""

    folder: Path
    postgres: LocalPostgres
    kafka: LocalKafka
    database: Database
    target: Database
    canaries: Canaries
    secrets: Mapping[str, str]
    given: Mapping[str, str]  # the operator's variables
    port: int  # of HTTP
    prefix: str
    holders: list[Path] = field(default_factory=list)  # files that are to have some

    @property
    def variables(self) -> dict[str, str]:
        """What the operator has set."""
        return {
            **self.given,
            "CONSUMER_TARGET_DSN": self.dsn("mirror", self.target),
            "WALSTREAM_DSN": self.dsn("streamer", self.database),
        }

    def dsn(self, role: str, database: Database, *, scheme: str = "postgresql") -> str:
        password = self.secrets[f"password of {role}"]
        return (
            f"{scheme}://{role}:{password}@{HOST}:{self.postgres.port}/{database.name}"
        )

    def client(self, user: str) -> dict[str, str]:
        return {
            "bootstrap.servers": self.kafka.bootstrap,
            "security.protocol": "sasl_plaintext",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": self.secrets[f"password of {user}"],
            "ssl.key.password": self.secrets["ssl.key.password"],
        }

    def document(self) -> dict[str, Any]:
        """Give the configuration: each secret literally, or by a reference."""
        secrets, server = self.secrets, f"{HOST}:{self.postgres.port}"
        kafka = {"kind": "kafka", "topic": self.prefix + "{schema}.{table}"}
        mask = {"kind": "mask", "columns": ["card"], "secret": secrets["mask"]}
        by_variable = {**self.client("rows"), "sasl.password": "${env:ROWS_PASSWORD}"}
        return {
            "state": str(self.folder / "state"),
            "log_level": "debug",
            "http": {"listen": f"{HOST}:{self.port}", "token": "${env:HTTP_TOKEN}"},
            "spark": {
                "master": "local[2,4]",
                "min_size": "0",
                "conf": {
                    "spark.eventLog.enabled": "true",
                    "spark.eventLog.dir": (self.folder / "events").as_uri(),
                    "spark.eventLog.compress": "false",
                    "spark.local.dir": str(self.folder / "temporary" / "spark"),
                    "spark.hadoop.fs.s3a.secret.key": secrets["s3"],
                    "spark.hadoop.fs.azure.account.key.me.net": "${env:AZURE_KEY}",
                    "spark.authenticate.secret": secrets["cluster"],
                },
            },
            "sources": {
                "app": {
                    "kind": "postgres",
                    "dsn": f"postgresql://streamer:${{file:{self.folder}/password}}@"
                    f"{server}/{self.database.name}"
                    f"?sslpassword={secrets['sslpassword']}",
                    "slot": self.database.name,
                    "tables": ["public.item"],
                    "backfill": "initial",
                    "sinks": ["kafka"],
                },
                "legacy": {
                    "kind": "sql",
                    "url": self.dsn(
                        "poller", self.database, scheme="postgresql+psycopg"
                    ),
                    "poll_interval": "200ms",
                    "sinks": ["rows"],
                    "tables": {"old": {"primary_key": "id"}},
                },
                "chained": {
                    "kind": "kafka",
                    "topics": [f"{self.prefix}public.item"],
                    "group": self.prefix,
                    "consumer": self.client("reader"),
                    "sinks": ["far"],
                },
            },
            "sinks": {
                "kafka": {
                    **kafka,
                    "handlers": [mask],
                    "producer": self.client("app"),
                },
                "rows": {**kafka, "format": "row", "producer": by_variable},
                "far": {
                    **kafka,
                    "topic": self.prefix + "far.{schema}.{table}",
                    "producer": self.client("far"),
                },
            },
        }

    def ask(self, path: str, method: str = "GET", *, token: bool = True) -> str:
        """Give all of an answer, its head too."""
        connection = http.client.HTTPConnection(HOST, self.port, timeout=30)
        bearer = f"Bearer {self.secrets['http']}"
        headers = {"Authorization": bearer} if token else {}
        try:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            text = answer.read().decode()
            return f"{answer.status} {answer.getheaders()} {text}"
        finally:
            connection.close()


@pytest.fixture
def site(own_postgres: OwnPostgres, own_kafka: OwnKafka, tmp_path: Path) -> Site:
    canaries = Canaries()
    users = ("streamer", "poller", "mirror", "app", "rows", "reader", "far")
    secrets = {
        name: canaries.plant(name) for name in (f"password of {u}" for u in users)
    }
    others = (
        "ssl.key.password",
        "sslpassword",
        "mask",
        "http",
        "s3",
        "azure",
        "cluster",
    )
    secrets |= {name: canaries.plant(name) for name in others}
    logins = " ".join(f'user_{u}="{secrets[f"password of {u}"]}"' for u in users[3:])
    kafka = own_kafka(
        {
            "listener.security.protocol.map": (
                "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT"
            ),
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.plaintext.plain.sasl.jaas.config": (
                f'{_PLAIN} username="admin" password="a" user_admin="a" {logins};'
            ),
        }
    )
    postgres = own_postgres()
    database, target = Database(postgres, "shop"), Database(postgres, "target")
    for one in (database, target):
        Database(postgres).execute(f"CREATE DATABASE {one.name}")
    for role in users[:3]:
        password = secrets[f"password of {role}"]
        database.execute(f"CREATE ROLE {role} LOGIN SUPERUSER PASSWORD '{password}'")
    rules = postgres.data / "pg_hba.conf"
    asked = "".join(f"host all {role} all scram-sha-256\n" for role in users[:3])
    rules.write_text(asked + rules.read_text())
    database.execute("SELECT pg_reload_conf()")
    database.execute(_TABLES)
    target.execute("CREATE TABLE item (id int PRIMARY KEY, n bigint, card text)")
    for name in ("events", "init", "temporary"):
        (tmp_path / name).mkdir()
    (tmp_path / "temporary" / "spark").mkdir(mode=0o700)
    (tmp_path / "password").write_text(secrets["password of streamer"])
    given = {
        "HTTP_TOKEN": secrets["http"],
        "ROWS_PASSWORD": secrets["password of rows"],
        "AZURE_KEY": secrets["azure"],
    }
    return Site(
        *(tmp_path, postgres, kafka, database, target, canaries, secrets, given),
        free_port(),
        "shop.",
        [
            tmp_path / "password",
            tmp_path / "run" / "walstream.toml",
        ],
    )


class Shift:
    """An operator with all of it at hand, who writes down whatever is said."""

    def __init__(self, site: Site, run: Everything, watch: Watch) -> None:
        self.site = site
        self.run = run
        self.written: dict[str, str] = {}  # by what said it
        self._environment = {**site.variables, **watch.environment}

    def says(
        self, *words: str, file: Path | None = None, codes: tuple[int, ...] = (0,)
    ) -> str:
        """Run a verb."""
        file = file or self.run.configuration
        done = verb(file, *words, environment=self._environment)
        return self._write(" ".join((*words, file.stem)), done, codes)

    def init(self, output: Path) -> None:
        words = ("--brokers", self.site.kafka.bootstrap, "-o", str(output))
        done = verb(None, "init", *words, environment=self._environment)
        self._write("init", done, (0, 5))

    def _write(self, name: str, done: Done, codes: tuple[int, ...]) -> str:
        self.written[name] = done.stdout + done.stderr
        assert done.returncode in codes, f"{name}: {self.written[name]}"
        assert "Traceback" not in self.written[name], self.written[name]
        return self.written[name]

    def asks_every_page(self) -> None:
        for page in _PAGES:
            for token in (True, False):
                self.written[f"{page} {token}"] = self.site.ask(page, token=token)

    def consumes(self, *words: str, until: Callable[[], object]) -> None:
        """Run the consumer library's command for a while."""
        name = f"consumer {' '.join(words)}"
        log = self.site.folder / f"consumer{len(self.written)}.log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "consumer", *words, "-v"],
                stdout=file,
                stderr=file,
                env={**os.environ, **self._environment},
            )
        try:
            wait_until(lambda: until() or process.poll() is not None, 60, name)
        finally:
            process.terminate()
            process.wait(60)
        self.written[name] = log.read_text("utf-8")

    def starts(self, document: dict[str, Any]) -> Everything:
        self.run.written = document
        self.written[f"log {self.run.starts}"] = (
            self.run.text if self.run.starts else ""
        )
        self.run.start()
        return self.run


@pytest.fixture
def watch(site: Site) -> Iterator[Watch]:
    allowed = [f"{name}={text}" for name, text in site.variables.items()]
    with Watch(site.folder / "temporary", allowed) as watching:
        yield watching


@pytest.fixture
def shift(site: Site, watch: Watch) -> Iterator[Shift]:
    run = Everything(
        *("", "", site.folder / "run", ""),
        environment={**site.variables, **watch.environment},
        written=site.document(),
    )
    run.configuration.write_text(toml(run.written), "utf-8")
    yield Shift(site, run, watch)
    run.close()


@pytest.mark.takes(60)
@pytest.mark.own_start
def test_no_secret_shows_in_any_verb_or_fault_at_debug(
    site: Site, shift: Shift, watch: Watch
) -> None:
    run, says = shift.run, shift.says
    before_it_runs(site, shift)
    while_it_runs(site, shift)
    consumers(site, shift)
    assert run.terminate() == 0, run.text
    says("poll", "--once")
    says("backfill", "public.item")
    faults(site, shift)
    run.close()
    watch.look()

    # who was to be seen was seen, and spoke at debug
    for name in (
        "walstream.service.worker_main",
        "walstream.spark.driver",
        "pyspark.daemon",
        "java",
    ):
        assert name in watch.names("argv")
    texts = {
        **shift.written,
        **{path.name: path.read_text("utf-8") for path in run.folder.glob("*.log")},
    }
    first = texts["walstream.1.log"]
    assert "spark-submit" in first  # said at debug alone, by Spark's process

    canaries = site.canaries
    tasks_carry_their_own(site)
    for name, text in texts.items():
        assert not canaries.found(text), f"{name}:\n{text}"
        assert "Command to send" not in text  # py4j's, with the key to the JVM
    for kind in ("argv", "environ", "deleted", "temporary"):
        for shown in watch.of(kind):
            assert not canaries.found(shown), f"{kind}: {shown!r}"
    holders = {str(path) for path in site.holders}
    assert canaries.found_below(site.folder).keys() == holders


def before_it_runs(site: Site, shift: Shift) -> None:
    shift.init(site.folder / "init" / "walstream.toml")
    assert "configuration-open" in shift.says("check", "--json")
    shift.says("config")


def while_it_runs(site: Site, shift: Shift) -> None:
    """Spark, a stream, a poll, a chain; every verb and page; a killed worker."""
    run = shift.run
    shift.starts(site.document()).until("backfill ended", 180)
    wait_until(lambda: site.ask("/ready").startswith("200"), 60, "all is ready")
    site.database.execute("INSERT INTO item VALUES (1000, 1, 'c')")
    site.database.execute("INSERT INTO old VALUES (2, 'b')")
    assert site.ask("/debug/on", "POST").startswith("200")
    shift.asks_every_page()
    for words in _VERBS:
        shift.says(*words, codes=(0, 5))
    shift.says("backfill", "public.item")
    for pid in run.workers():
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: site.ask("/ready").startswith("200"), 60, "all is ready again")
    topic = (f"{site.prefix}far.public.item", "--sink", "far", "--from-beginning")
    shift.says("tail", *topic, "-n", "5", "--json")
    shift.says("tail", *topic, "-n", "5")


def consumers(site: Site, shift: Shift) -> None:
    topic, kafka = f"{site.prefix}public.item", site.folder / "kafka.properties"
    wrong = {**site.client("app"), "sasl.password": site.canaries.plant("wrong")}
    wrong["debug"] = "all"
    for file, client in ((kafka, site.client("app")), (site.folder / "wrong", wrong)):
        lines = (f"{key}={text}\n" for key, text in client.items())
        file.write_text("".join(lines))
        site.holders.append(file)
    words = (topic, "--group", "mirrored", "--kafka-file", str(kafka))
    shift.consumes("mirror", *words, until=lambda: site.target.fetch("TABLE item"))
    away = (topic, "--kafka-file", str(site.folder / "wrong"))
    began = time.monotonic()
    shift.consumes("tail", *away, until=lambda: time.monotonic() > began + 3)


def faults(site: Site, shift: Shift) -> None:
    """Passwords that are wrong, servers that are away, files that cannot be read."""
    run, good = shift.run, site.document()
    wrong = site.canaries.plant("a wrong password")

    def changed(name: str, change: Callable[[dict[str, Any]], object]) -> Path:
        document = site.document()
        change(document)
        file = run.folder / f"{name}.toml"
        file.write_text(toml(document), "utf-8")
        site.holders.append(file)
        return file

    port = free_port()
    elsewhere = f"postgresql://streamer:{wrong}@{HOST}:{port}/shop"
    for name, change, codes in (
        (
            "kafka",
            lambda it: it["sinks"]["kafka"]["producer"].update(
                {"sasl.password": wrong}
            ),
            (4,),
        ),
        ("away", lambda it: it["sources"]["app"].update(dsn=elsewhere), (5,)),
        ("unknown", lambda it: it["sources"]["app"].update(dns=wrong), (2,)),
        ("broken", lambda it: it["sources"]["app"].update(dsn=wrong), (2,)),
        ("url", lambda it: it["sources"]["legacy"].update(url=f"x://{wrong}:y"), (2,)),
        ("open", lambda it: it["spark"].update(master="yarn"), (2,)),
        ("missing", lambda it: it["http"].update({"token": "${env:NONE}"}), (2,)),
        ("debug", lambda it: it["sinks"]["far"]["producer"].update(debug="all"), (2,)),
    ):
        file = changed(name, change)
        shift.says("check", file=file, codes=codes)
        if codes == (2,):
            shift.says("config", file=file, codes=codes)

    # of Kafka, from the start; of PostgreSQL, while it streams
    good["sinks"]["kafka"]["producer"]["sasl.password"] = wrong
    shift.starts(good).until("Authentication failed", 60)
    shift.says("status", codes=(0, 1, 2, 3, 4, 5))
    run.terminate()
    shift.starts(site.document()).until("streaming")
    site.database.execute(f"ALTER ROLE streamer PASSWORD '{wrong}'")
    site.database.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE usename = 'streamer'"
    )
    run.until("password authentication failed", 60)
    for words in _IN_TROUBLE:
        shift.says(*words, codes=(0, 1, 2, 3, 4, 5))
    shift.asks_every_page()


def tasks_carry_their_own(site: Site) -> None:
    """Claim that what goes to Spark has its own source's and sinks' secrets alone."""
    config = load(site.folder / "run" / "walstream.toml", site.variables)
    known = {"t": Topic("t", "id", 1, 1_000_000)}
    snapshot = TaskSnapshot("1-1", 1, b"7/shop/1")
    chunks = chunk_task(config, "app", snapshot, {"kafka": known})
    key = SqlColumn("id", "INTEGER", Integer())
    shape = SqlTableShape("old", "", "old", key, (key,))
    poll = PollOrder("legacy", "old", shape, {"rows": known["t"]}, [], "/nowhere", 1)
    assert site.canaries.found(base64.b64encode(pickle.dumps(chunks))) == {
        *("password of streamer", "sslpassword"),
        *("password of app", "ssl.key.password", "mask"),
    }
    assert site.canaries.found(pickle.dumps(poll.task(config, None))) == {
        *("password of poller", "password of rows", "ssl.key.password"),
    }
