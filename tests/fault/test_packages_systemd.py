"""The deb under systemd itself, which is the first process of a clean Debian."""

import signal
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from secrets import token_hex

import pytest

from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import OwnKafka
from tests.support.fixtures.packages import CONFIGURATION, document
from tests.support.fixtures.postgres import Database, PostgresServer, temporary_database
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.walstream import SOURCE, toml
from tests.support.servers.debian import System, lacking
from tests.support.servers.systemd import Machine, booted, status_of
from walstream.formats import row
from walstream.formats.op import decode
from walstream.testing.servers import LocalKafka

UNIT = "walstream.service"
_DROP_INS = f"/etc/systemd/system/{UNIT}.d"
_EXAMPLE = "/usr/share/doc/walstream/examples/credentials.conf"
_DSN = "${file:${env:CREDENTIALS_DIRECTORY}/dsn}"
_JAVA = "openjdk-17-jre-headless"
_PATIENT = 60.0
WHY = lacking("debootstrap", "dpkg-deb", "unshare", "nsenter", "go", "envsubst")
pytestmark = [
    pytest.mark.fault_long,
    pytest.mark.takes(600),
    pytest.mark.skipif(bool(WHY), reason=WHY),
]


@dataclass
class Streams:
    """An installed walstream with a table, and the topic that its rows come to."""

    machine: Machine
    database: Database
    kafka: LocalKafka
    reader: Reader
    rows: int = 0

    def starts(self, *words: str, status: str = f"{SOURCE} streaming") -> None:
        """Start it, and see that it streams: what is there before is not backfilled."""
        started = self.machine.systemctl(*(words or ("start",)), UNIT)
        assert started.returncode == 0, self.machine.log(UNIT)
        wait_until(
            lambda: self.machine.shown(UNIT, "StatusText") == status,
            _PATIENT,
            f"systemd knows: {status}",
        )

    def comes(self) -> None:
        """See a new row arrive."""
        self.rows += 1
        self.database.execute(f"INSERT INTO t VALUES ({self.rows})")  # noqa: S608
        records = self.reader.until(
            lambda records: self.rows in [int(one.new["id"]) for one in records],
            _PATIENT,
        )
        assert {int(one.new["id"]) for one in records} == set(range(1, self.rows + 1))

    def restarts(self) -> int:
        return int(self.machine.shown(UNIT, "NRestarts"))


@pytest.fixture
def machine(system: System) -> Iterator[Machine]:
    with booted(system) as made:
        yield made


@pytest.fixture
def stream(
    machine: Machine, postgres18: PostgresServer, own_kafka: OwnKafka
) -> Iterator[Streams]:
    """Configure it as its documentation says: the connection string is a credential."""
    kafka = own_kafka()
    prefix = f"test_{token_hex(6)}."
    with (
        temporary_database(postgres18) as database,
        Reader(kafka.bootstrap, prefix, decode) as reader,
    ):
        database.execute("CREATE TABLE t (id int PRIMARY KEY)")
        text = toml(document(_DSN, kafka.bootstrap, prefix))
        machine.path(CONFIGURATION).write_text(text, "utf-8")
        machine.path("/etc/walstream/dsn").write_text(database.dsn, "utf-8")
        machine.path("/etc/walstream/dsn").chmod(0o600)
        machine.run("install", "-D", "-m", "0644", _EXAMPLE, f"{_DROP_INS}/c.conf")
        yield Streams(machine, database, kafka, reader)


@pytest.fixture
def hasty(stream: Streams) -> Streams:
    """Let nobody wait for the times that are meant for years."""
    path = stream.machine.path(f"{_DROP_INS}/hasty.conf")
    path.write_text("[Service]\nWatchdogSec=4\nRestartSec=100ms\n", "utf-8")
    assert stream.machine.systemctl("daemon-reload").returncode == 0
    return stream


def test_a_stream_runs_in_its_unit_and_is_upgraded(
    stream: Streams, packages: dict[str, Path]
) -> None:
    machine = stream.machine
    stream.starts("enable", "--now")
    stream.comes()
    main = machine.process(UNIT)
    ours = [main, *main.children(recursive=True)]
    assert len(ours) > 1
    for process in ours:
        status = status_of(process)
        assert status["NoNewPrivs"] == "1"
        assert status["Seccomp"] == "2"
        assert {int(status[name], 16) for name in ("CapEff", "CapBnd")} == {0}
        assert "0" not in status["Uid"].split()
    assert machine.systemctl("reload", UNIT).returncode == 0, machine.log(UNIT)
    assert machine.process(UNIT).pid == main.pid
    machine.install(packages["newer"])
    assert machine.process(UNIT).pid != main.pid
    stream.comes()
    assert machine.systemctl("stop", UNIT).returncode == 0
    assert machine.shown(UNIT, "Result") == "success", machine.log(UNIT)
    stream.starts()
    stream.comes()
    assert stream.restarts() == 0
    last = machine.process(UNIT)
    assert machine.run("dpkg", "-r", "walstream").returncode == 0
    assert not last.is_running()
    assert machine.systemctl("is-enabled", UNIT).stdout.strip() != "enabled"


def test_what_died_or_hangs_is_started_again(hasty: Streams) -> None:
    machine = hasty.machine
    hasty.starts()
    hasty.comes()
    for restarts, fault in ((1, signal.SIGKILL), (2, signal.SIGSTOP)):
        machine.process(UNIT).send_signal(fault)
        again = partial(lambda wanted: hasty.restarts() == wanted, restarts)
        wait_until(again, _PATIENT, f"it is started again after {fault.name}")
        hasty.comes()
    assert "watchdog" in machine.log(UNIT).lower()
    # a worker alone is the supervisor's business: the others go on
    main = machine.process(UNIT)
    (worker,) = main.children()
    worker.send_signal(signal.SIGSTOP)
    wait_until(lambda: not worker.is_running(), _PATIENT, "the worker is killed")
    hasty.comes()
    assert machine.process(UNIT).pid == main.pid
    assert hasty.restarts() == 2


def test_an_outage_of_kafka_is_no_reason_to_start_again(hasty: Streams) -> None:
    machine = hasty.machine
    hasty.starts()
    hasty.comes()
    hasty.kafka.stop()
    hasty.database.execute("INSERT INTO t VALUES (1000000)")
    fed: set[str] = set()

    def often() -> bool:
        fed.add(machine.shown(UNIT, "WatchdogTimestampMonotonic"))
        return len(fed) > 12  # of three and more of the watchdog's times

    wait_until(often, _PATIENT, "the watchdog is fed")
    assert machine.shown(UNIT, "ActiveState") == "active"
    hasty.kafka.start()
    hasty.reader.until(
        lambda records: "1000000" in [one.new["id"] for one in records], _PATIENT
    )
    assert hasty.restarts() == 0


def test_what_needs_an_operator_is_not_started_again(hasty: Streams) -> None:
    machine = hasty.machine

    def ends_with(code: str) -> None:
        machine.systemctl("start", UNIT)
        wait_until(
            lambda: machine.shown(UNIT, "ActiveState") == "failed", 30, "it fails"
        )
        assert machine.shown(UNIT, "ExecMainStatus") == code, machine.log(UNIT)
        assert hasty.restarts() == 0

    configuration = machine.path(CONFIGURATION)
    right = configuration.read_text("utf-8")
    configuration.write_text(right + "colour = 1\n", "utf-8")
    ends_with("2")
    configuration.write_text(right, "utf-8")
    hasty.starts()
    hasty.comes()
    assert machine.systemctl("stop", UNIT).returncode == 0
    hasty.database.execute("SELECT pg_drop_replication_slot('packaged')")
    ends_with("3")


def test_spark_runs_in_its_unit(stream: Streams, packages: dict[str, Path]) -> None:
    """A backfill and polling, on a machine whose own name nobody can look up."""
    machine = stream.machine
    machine.path("/etc/hosts").write_text("127.0.0.1 localhost\n", "utf-8")
    assert machine.run("getent", "hosts", "test").returncode != 0
    for words in ("update -qq", f"install -qq --no-install-recommends {_JAVA}"):
        done = machine.run("apt-get", "-y", *words.split())
        assert done.returncode == 0, done.stderr
    machine.install(packages["walstream-spark"])
    stream.database.execute("INSERT INTO t SELECT generate_series(-1000, -1)")
    making = (
        "import sqlite3; made = sqlite3.connect('/var/lib/walstream/old.db');"
        "made.execute('CREATE TABLE t (id integer PRIMARY KEY)');"
        "made.execute('INSERT INTO t VALUES (-1001)'); made.commit()"
    )
    as_it = ["setpriv", "--reuid=walstream", "--regid=walstream", "--clear-groups"]
    assert machine.run(*as_it, "python3.11", "-c", making).returncode == 0
    configuration = machine.path(CONFIGURATION)
    written = tomllib.loads(configuration.read_text("utf-8"))
    del written["sources"][SOURCE]["backfill"]
    written["spark"] = {"min_size": "0"}
    written["sources"]["old"] = {
        "kind": "sql",
        "url": "sqlite:////var/lib/walstream/old.db",
        "sinks": ["rows"],
        "tables": {"t": {"primary_key": "id"}},
    }
    (sink,) = written["sinks"].values()
    prefix = f"test_{token_hex(6)}."
    written["sinks"]["rows"] = {**sink, "format": "row", "topic": prefix + "{table}"}
    configuration.write_text(toml(written), "utf-8")
    stream.starts(status=f"{SOURCE} streaming, old polling")
    with Reader(stream.kafka.bootstrap, prefix, row.decode) as rows:
        rows.count(1, _PATIENT)
    stream.reader.until(lambda records: len(records) == 1000, _PATIENT)
    assert stream.restarts() == 0
