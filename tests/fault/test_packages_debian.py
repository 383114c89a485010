"""The deb packages in clean systems: installed, run, upgraded, removed, purged."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex
from typing import Final

import pytest

from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.packages import CONFIGURATION, STATE, document, walstream_of
from tests.support.fixtures.postgres import PostgresServer, temporary_database
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.walstream import SOURCE, toml
from tests.support.servers.debian import ROOT, System, lacking
from walstream.formats.op import decode

WHY = lacking("debootstrap", "dpkg-deb", "unshare", "setpriv", "go", "envsubst")
pytestmark = [
    pytest.mark.fault_long,
    pytest.mark.takes(600),
    pytest.mark.skipif(bool(WHY), reason=WHY),
]


def test_an_installation_has_its_files_owners_and_modes(system: System) -> None:
    assert system.facts(CONFIGURATION, "/etc/walstream", STATE, "/opt/walstream") == {
        CONFIGURATION: "-rw-r----- root:walstream",
        "/etc/walstream": "drwxr-x--- root:walstream",
        STATE: "drwx------ walstream:walstream",
        "/opt/walstream": "drwxr-xr-x root:root",
    }
    find = "find /opt/walstream ! -user root -o -perm /022 ! -type l"
    assert not system.run("sh", "-c", find).stdout
    assert system.run("getent", "passwd", "walstream").stdout.endswith("/nologin\n")
    version = system.run("walstream", "--version")
    assert re.fullmatch(r"walstream [\d.]+ \(compiled\)\n", version.stdout)
    for unit in ("walstream.service", "walstream@app.service"):
        verify = ("systemd-analyze", "verify", "--man=no", unit)
        verified = system.run(*verify, environment={"SYSTEMD_LOG_TARGET": "console"})
        assert verified.returncode == 0, verified.stderr
    doc = system.path("/usr/share/doc/walstream")
    bill = json.loads((doc / "sbom.cdx.json").read_text("utf-8"))
    parts = bill["components"]
    named = {part["name"] for part in parts if "purl" in part}
    assert {"confluent-kafka", "psycopg", "lmdb"} <= named
    others = {part["name"] for part in parts if "purl" not in part}
    assert {"librdkafka", "libpq", "libssl"} <= others
    assert "pyspark" not in named
    texts = {one.name for one in (doc / "licenses").iterdir() if any(one.iterdir())}
    assert {name.lower() for name in named} <= {name.lower() for name in texts}
    assert system.path("/usr/share/man/man1/walstream.1.gz").stat().st_size > 1000
    bash = system.path("/usr/share/bash-completion/completions/walstream")
    assert "_WALSTREAM_COMPLETE=complete_bash" in bash.read_text("utf-8")


def test_the_packaged_configuration_has_one_clear_error(system: System) -> None:
    checked = system.run("walstream", "check")
    assert checked.returncode == 2
    said = checked.stdout + checked.stderr
    assert said.count("WALSTREAM_DSN") == 1
    assert f"{CONFIGURATION}: sources.app.dsn: " in " ".join(said.split()), said


def test_an_upgrade_keeps_configuration_and_state(
    system: System, packages: dict[str, Path]
) -> None:
    configuration = system.path(CONFIGURATION)
    changed = configuration.read_text("utf-8") + "# mine\n"
    configuration.write_text(changed, "utf-8")
    state = system.path(STATE) / "app"
    state.mkdir()
    (state / "data.mdb").write_bytes(b"positions")
    system.install(packages["newer"])
    version = system.run("dpkg-query", "-W", "-f", "${Version}", "walstream")
    assert version.stdout.endswith("-2")
    assert configuration.read_text("utf-8") == changed
    assert system.facts(CONFIGURATION)[CONFIGURATION] == "-rw-r----- root:walstream"
    assert (state / "data.mdb").read_bytes() == b"positions"


def test_removing_keeps_both_and_purging_deletes(system: System) -> None:
    (system.path(STATE) / "app").mkdir()
    removed = system.run("dpkg", "-r", "walstream")
    assert removed.returncode == 0
    assert "replication slots stay" in removed.stdout
    assert system.path(CONFIGURATION).exists()
    assert (system.path(STATE) / "app").exists()
    assert not system.path("/opt/walstream").exists()
    assert not system.path("/usr/bin/walstream").is_symlink()
    assert system.run("dpkg", "-P", "walstream").returncode == 0
    assert not system.path("/etc/walstream").exists()
    assert not system.path(STATE).exists()


def test_systemd_hears_of_upgrades_and_removals(
    system: System, packages: dict[str, Path]
) -> None:
    """Its command is another here, which notes what it is told."""
    system.path("/run/systemd/system").mkdir(parents=True)
    command, calls = system.path("/usr/bin/systemctl"), system.path("/root/calls")
    command.write_text('#!/bin/sh\necho "$@" >>/root/calls\n', "utf-8")

    def heard() -> list[str]:
        lines = calls.read_text("utf-8").splitlines()
        calls.unlink()
        return lines

    again = "try-restart walstream.service walstream@*.service"
    system.install(packages["newer"])
    assert heard()[-2:] == ["daemon-reload", again]
    wants = system.path("/etc/systemd/system/multi-user.target.wants")
    wants.mkdir(parents=True, exist_ok=True)
    unit = "/usr/lib/systemd/system/walstream@.service"
    (wants / "walstream@app.service").symlink_to(unit)
    assert system.run("dpkg", "-r", "walstream").returncode == 0
    assert heard()[:3] == [
        "disable --now walstream.service",
        "stop walstream@*.service",
        "disable walstream@app.service",
    ]


def test_without_spark_one_line_says_what_to_install(
    system: System, packages: dict[str, Path]
) -> None:
    find = "/opt/walstream/bin/python", "-c", "import pyspark; print(pyspark.__file__)"
    assert system.run(*find).returncode != 0
    polled_table = {"tables": {"t": {"primary_key": "id"}}, "sinks": ["rows"]}
    source = {"kind": "sql", "url": "sqlite:////tmp/x.db", **polled_table}
    producer = {"bootstrap.servers": "127.0.0.1:1"}
    sink = {"kind": "kafka", "format": "row", "producer": producer}
    document = {"state": STATE, "http": {"listen": ""}, "sources": {"old": source}}
    text = toml({**document, "sinks": {"rows": sink}})
    system.path(CONFIGURATION).write_text(text, "utf-8")
    for verb in (["poll", "--once"], ["run"]):
        polled = system.run("walstream", *verb)
        assert polled.returncode == 2, polled.stderr
        said = [
            line for line in polled.stderr.splitlines() if "walstream-spark" in line
        ]
        assert len(said) == 1, polled.stderr
    # no Java in there: what it depends on is looked at elsewhere
    spark = packages["walstream-spark"]
    shutil.copyfile(spark, system.path("/root/spark.deb"))
    forced = system.run("dpkg", "-i", "--force-depends", "/root/spark.deb")
    assert forced.returncode == 0, forced.stderr
    assert system.run(*find).stdout == "/opt/walstream-spark/pyspark/__init__.py\n"
    polled = system.run("walstream", "poll", "--once")
    assert polled.returncode == 2
    assert "Spark needs Java 17 or later" in polled.stderr


CONSUMER: Final = """
import sys, consumer, walstream_consumer, lmdb, psycopg.pq
assert consumer is walstream_consumer
assert sys.path[-1] == "/usr/lib/walstream-consumer", sys.path
print(psycopg.pq.__impl__, walstream_consumer.Op.__module__)
"""


def test_the_consumer_library_is_the_systems(
    system: System, packages: dict[str, Path]
) -> None:
    """Beside walstream, whose environment does not see it, and without."""
    system.install(packages["walstream-consumer"])
    for _ in range(2):
        found = system.run("python3", "-c", CONSUMER)
        assert found.stdout == "binary walstream_consumer.op\n", found.stderr
        told = system.run("python3", "-m", "walstream_consumer", "--help")
        assert told.stdout.startswith("usage: python -m walstream_consumer ")
        if system.path("/opt/walstream").exists():
            own = system.run(
                "/opt/walstream/bin/python",
                "-c",
                "import consumer as c;"
                "import walstream_consumer as w; print(w is c, c.__file__)",
            )
            assert own.stdout.startswith("True /opt/walstream/lib/"), own.stderr
            assert system.run("dpkg", "-P", "walstream").returncode == 0
    folder = "/usr/lib/walstream-consumer"
    assert not system.run("sh", "-c", f"find {folder} ! -user root").stdout
    doc = system.path("/usr/share/doc/walstream-consumer")
    bill = json.loads((doc / "sbom.cdx.json").read_text("utf-8"))
    named = {part["name"] for part in bill["components"] if "purl" in part}
    assert {"confluent-kafka", "lmdb", "orjson", "psycopg", "psycopg-binary"} <= named
    assert bill["metadata"]["component"]["name"] == "walstream-consumer"
    texts = {one.name for one in (doc / "licenses").iterdir() if any(one.iterdir())}
    assert texts == named | {"walstream-consumer"}
    assert "lmdb" in (doc / "copyright").read_text("utf-8")
    assert system.run("dpkg", "-P", "walstream-consumer").returncode == 0
    assert not system.path(folder).exists()
    assert (
        "No module" in system.run("python3", "-c", "import walstream_consumer").stderr
    )


def test_an_older_library_of_the_system_is_named(
    system: System, packages: dict[str, Path]
) -> None:
    system.install(packages["walstream-consumer"])
    theirs = system.path("/usr/lib/python3/dist-packages/confluent_kafka")
    theirs.mkdir()
    text = "def version():\n    return ('1.7.0', 0x01070000)\n"
    (theirs / "__init__.py").write_text(text, "utf-8")
    found = system.run("python3", "-c", "import walstream_consumer")
    assert "dist-packages/confluent_kafka is 1.7.0: upgrade or remove" in found.stderr


class Manager:
    """systemd's ear, in a system's /run."""

    def __init__(self, system: System) -> None:
        path = system.path("/run/notify")
        self._inlet = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._inlet.bind(str(path))
        self._inlet.setblocking(False)
        path.chmod(0o777)
        self.heard: list[str] = []

    def listen(self) -> list[str]:
        """Give all lines that came so far."""
        try:
            while True:
                self.heard += self._inlet.recv(4096).decode().split("\n")
        except BlockingIOError:
            return self.heard

    def close(self) -> None:
        self._inlet.close()

    def hears_it_stream(self) -> bool:
        return f"STATUS={SOURCE} streaming" in self.listen()


@pytest.fixture
def manager(system: System) -> Iterator[Manager]:
    made = Manager(system)
    yield made
    made.close()


@pytest.mark.skipif(not shutil.which("strace"), reason="apt-get install strace")
def test_a_stream_runs_under_the_units_restrictions(
    system: System,
    manager: Manager,
    packages: dict[str, Path],
    postgres18: PostgresServer,
    kafka: KafkaServer,
) -> None:
    """Its user, no capabilities, a file system to read alone but for its state.

    What systemd forbids beyond that is compared with the calls that it makes. It is
    upgraded meanwhile, and restarted as the package would.
    """
    topic_prefix = f"test_{token_hex(6)}."
    unit = (ROOT / "packaging/systemd/walstream.service").read_text("utf-8")
    found = re.search(r"^ExecStart=(.*)$", unit, re.MULTILINE)
    assert found is not None
    calls = system.folder.with_name("calls")
    trace = ["strace", "-f", "-qq", "-o", str(calls)]
    told = {"NOTIFY_SOCKET": "/run/notify", "WATCHDOG_USEC": "2000000"}
    environment = {**os.environ, **told}
    start = [*trace, *system.command(*found[1].split(), sandboxed=True)]
    with (
        temporary_database(postgres18) as database,
        Reader(kafka.bootstrap, topic_prefix, decode) as reader,
    ):
        database.execute("CREATE TABLE t (id int PRIMARY KEY)")
        text = toml(document(database.dsn, kafka.bootstrap, topic_prefix))
        system.path(CONFIGURATION).write_text(text, "utf-8")
        for number in (1, 2):
            process = subprocess.Popen(start, env=environment, stderr=subprocess.PIPE)
            try:
                wait_until(manager.hears_it_stream, 60, "it streams")
                assert manager.heard[0] == "READY=1"
                assert "WATCHDOG=1" in manager.heard
                database.execute(f"INSERT INTO t VALUES ({number})")  # noqa: S608
                assert reader.count(number)[-1].op.new == [str(number)]
                run = walstream_of(process.pid)
                status = (Path("/proc") / str(run.pid) / "status").read_text("utf-8")
                assert re.search(r"^NoNewPrivs:\t1$", status, re.MULTILINE)
                assert re.search(r"^CapEff:\t0+$", status, re.MULTILINE)
                assert re.search(r"^CapBnd:\t0+$", status, re.MULTILINE)
                assert 0 not in run.uids()
                if number == 1:
                    system.install(packages["newer"])
                run.send_signal(signal.SIGTERM)
                _, log = process.communicate(timeout=60)
                assert process.returncode == 0, log.decode()
                assert "STOPPING=1" in manager.listen()
            finally:
                process.kill()
            manager.heard.clear()
        # root looks, and begins anew: what it writes is the service's all the same
        assert SOURCE in system.run("walstream", "status").stdout
        reset = system.run("walstream", "positions", "reset", SOURCE, "--yes")
        assert reset.returncode == 0, reset.stderr
    foreign = system.run("find", STATE, "!", "-user", "walstream")
    assert (foreign.stdout, foreign.returncode) == ("", 0)
    assert made_by(calls) <= allowed(unit)


def made_by(calls: Path) -> set[str]:
    """Name the calls that walstream made and that the system did not refuse anyway."""
    traced = calls.read_text("utf-8", errors="replace")
    _, _, own = traced.partition('execve("/usr/bin/walstream"')
    assert own
    assert "PROT_WRITE|PROT_EXEC" not in own  # what MemoryDenyWriteExecute refuses
    assert not re.search(r"mprotect\([^)]*PROT_EXEC", own)
    families = set(re.findall(r"\bsocket\((AF_\w+)", own))
    assert families <= {"AF_UNIX", "AF_INET", "AF_INET6", "AF_NETLINK"}
    return set(re.findall(r"^\d+ +(\w+)\(", own, re.MULTILINE))


def allowed(unit: str) -> set[str]:
    """Expand the unit's filters as systemd does."""
    calls: set[str] = set()
    for line in re.findall(r"^SystemCallFilter=(.*)$", unit, re.MULTILINE):
        names = line.removeprefix("~").split()
        meant = {call for name in names for call in expanded(name)}
        calls = calls - meant if line.startswith("~") else calls | meant
    return calls


def expanded(name: str) -> set[str]:
    if not name.startswith("@"):
        return {name}
    command = ["systemd-analyze", "syscall-filter", "--no-pager", name]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = [line.strip() for line in told.splitlines()[1:]]
    named = [line for line in lines if line and not line.startswith("#")]
    return {call for one in named for call in expanded(one)}
