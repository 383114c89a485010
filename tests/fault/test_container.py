"""The images, and the first day's services, in a real container engine."""

import json
import random
import time
import tomllib
from base64 import b64encode
from urllib.request import Request, urlopen

import pytest

from tests.support.deadline import wait_until
from tests.support.fixtures.postgres import Database
from tests.support.loads.keyed import TABLE, Load
from tests.support.oracles.op_order import (
    OracleSlot,
    assert_rewind_and_continue,
    foreign,
    missing,
)
from tests.support.servers.compose import MAIN, Stack
from tests.support.servers.engine import ROOT, Engine, lacking

WHY = lacking()
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
    "version"
]
IMAGES = (f"walstream:{VERSION}", f"walstream:{VERSION}-spark")
_KILLS = 10
_GRACE_S = 30  # of compose.yaml
_WRITTEN = ("shop.load", "shop.orders")
pytestmark = [
    pytest.mark.fault_long,
    pytest.mark.takes(900),
    pytest.mark.skipif(bool(WHY), reason=WHY),
]


def test_changes_come_to_the_screen(healthy: Stack) -> None:
    def shown() -> str:
        return healthy.log("tail")

    wait_until(lambda: " insert shop.orders " in shown(), 60, "a change is shown")
    wait_until(lambda: " update shop.orders " in shown(), 60, "another one, too")
    assert " insert snapshot shop.customers " in shown()
    token = healthy.secret("token")
    port = healthy.compose("port", MAIN, "8321").stdout.strip().rpartition(":")[2]
    page = Request(f"http://127.0.0.1:{port}/")
    login = b64encode(f":{token}".encode()).decode()
    page.add_header("Authorization", f"Basic {login}")
    with urlopen(page, timeout=10) as answer:  # noqa: S310 - of this machine
        assert b"shop" in answer.read()


def test_no_password_is_shown_by_the_engine(healthy: Stack) -> None:
    names = ("postgres", "shop", "walstream", "token")
    secrets = [healthy.secret(name) for name in names]
    assert len(set(secrets)) == len(names)
    assert all(len(one) == 32 for one in secrets)
    for service in ("postgres", "kafka", "walstream", "workload", "tail", "secrets"):
        known = json.dumps(healthy.inspect(service)) + healthy.log(service)
        if service != "secrets":  # which has ended
            top = ("top", healthy.container(service), "-eo", "pid,args")
            known += healthy.engine.says(*top)
        assert not [one for one in secrets if one in known], service


def test_it_runs_with_no_right_that_it_does_not_need(healthy: Stack) -> None:
    status = healthy.inside("cat", "/proc/1/status").stdout
    found = dict(line.split(":\t", 1) for line in status.splitlines())
    assert found["Uid"].split() == ["10001"] * 4
    assert found["Gid"].split() == ["10001"] * 4
    assert found["NoNewPrivs"] == "1"
    assert {int(found[name], 16) for name in ("CapEff", "CapPrm", "CapBnd")} == {0}
    refused = healthy.inside("sh", "-c", "touch /opt/walstream/x /etc/walstream/x")
    assert refused.stderr.count("Read-only file system") == 2
    told = healthy.inspect()
    assert told["HostConfig"]["ReadonlyRootfs"] is True
    assert told["HostConfig"]["Privileged"] is False


def test_it_is_unhealthy_while_it_hangs_and_only_then(healthy: Stack) -> None:
    def supervisor(signal: str) -> None:
        child = 'for one in /proc/[0-9]*; do [ "$(cut -d" " -f4 $one/stat)" != 1 ] ||'
        script = f'{child} kill -s {signal} "${{one#/proc/}}"; done'
        done = healthy.inside("sh", "-c", script)
        assert done.returncode == 0, done.stderr

    def checks() -> str:
        return str(healthy.inspect()["State"]["Health"]["Log"][-1]["End"])

    supervisor("STOP")
    healthy.becomes("unhealthy")
    supervisor("CONT")
    healthy.becomes("healthy")
    # Kafka's outage is none of its own: whoever replaced it would win nothing
    healthy.compose("stop", "-t", "5", "kafka")
    seen: set[str] = set()

    def often() -> bool:
        seen.add(checks())
        return len(seen) > 6

    wait_until(often, 60, "it was checked")
    assert healthy.health() == "healthy"
    healthy.compose("start", "kafka")


def test_zombies_are_reaped(healthy: Stack) -> None:
    healthy.inside("sh", "-c", "(sleep 0.2 &)")
    states = 'for one in /proc/[0-9]*; do cut -d" " -f2,3 $one/stat; done'

    def orphans() -> list[str]:
        told = healthy.inside("sh", "-c", states).stdout.splitlines()
        return [one for one in told if one.startswith("(sleep)")]

    wait_until(lambda: not orphans(), 30, "the orphan is gone")


def test_a_stop_drains_within_its_grace(healthy: Stack) -> None:
    database = with_load(healthy)
    with Load(owner(database), seed=1) as load:
        load.wait_for_more(100)
        assert stopped_in(healthy) < _GRACE_S - 5
    assert healthy.inspect()["State"]["ExitCode"] == 0
    assert '"event": "drained"' in healthy.log().splitlines()[-1]


def test_a_stop_of_its_first_moments_is_heard(healthy: Stack) -> None:
    """The first process of a container ignores signals that it does not ask for."""
    for pause_s in (0.0, 0.3, 0.6, 0.9):
        stopped_in(healthy)
        healthy.engine.run("start", healthy.container())
        time.sleep(pause_s)
        assert stopped_in(healthy) < _GRACE_S - 5
        assert healthy.inspect()["State"]["ExitCode"] in (0, 143)


def stopped_in(stack: Stack) -> float:
    """Stop it, and tell how many seconds that took."""
    begun = time.monotonic()
    stack.engine.run("stop", "-t", str(_GRACE_S), stack.container())
    return time.monotonic() - begun


def test_ten_killed_and_replaced_containers_lose_nothing(healthy: Stack) -> None:
    database = with_load(healthy)
    oracle = OracleSlot(database)
    choose = random.Random(7)  # noqa: S311 - moments of a test
    used = {healthy.container()}
    with Load(owner(database), seed=7) as load:
        for _ in range(_KILLS):
            load.wait_for_more(choose.randrange(50, 400))
            healthy.engine.run("kill", "-s", "KILL", healthy.container())
            healthy.engine.run("rm", "-f", healthy.container())
            healthy.up("--no-deps", MAIN)
            used.add(healthy.container())
        healthy.becomes("healthy")
        load.wait_for_more(100)
    healthy.compose("stop", "-t", "1", "workload")
    assert len(used) == _KILLS + 1
    ((end,),) = database.fetch("SELECT pg_current_wal_insert_lsn()")
    wait_until(lambda: confirmed(database, end), 120, "all is delivered")
    committed = oracle.names()
    found = [one for topic in _WRITTEN for one in healthy.records(topic)]
    records = [one for one in found if one.name >= committed[0]]
    assert len(committed) > 1000
    assert missing(committed, records) == []
    assert foreign(committed, records) == []
    repeats = assert_rewind_and_continue(records)
    assert repeats < len(committed)
    oracle_slot = f"oracle_{database.name}"
    database.fetch("SELECT pg_drop_replication_slot(%s)", oracle_slot)


def confirmed(database: Database, end: str) -> bool:
    asked = "SELECT confirmed_flush_lsn >= %s FROM pg_replication_slots"
    return database.fetch(f"{asked} WHERE slot_name = 'walstream'", end) == [(True,)]


def with_load(stack: Stack) -> Database:
    """Give the database, with a table for the load that walstream has published."""
    database = stack.database()
    if not database.fetch("SELECT 1 WHERE to_regclass('shop.load') IS NOT NULL"):
        database.execute(f"SET ROLE shop; SET search_path = shop; {TABLE}")
    published = (
        "SELECT 1 FROM pg_publication_tables"
        " WHERE pubname = 'walstream' AND tablename = 'load'"
    )
    wait_until(lambda: database.fetch(published), 120, "the table is published")
    return database


def owner(database: Database) -> str:
    return f"{database.dsn} options='-c search_path=shop'"


def test_down_and_up_continue(healthy: Stack) -> None:
    def names() -> set[tuple[int, int]]:
        return {one.name for one in healthy.records("shop.orders")}

    wait_until(lambda: len(names()) > 3, 60, "orders come")
    before = names()
    healthy.compose("down", "-t", str(_GRACE_S))
    healthy.up()
    healthy.becomes("healthy")
    wait_until(lambda: len(names()) > len(before) + 3, 60, "more orders come")
    records = healthy.records("shop.orders")
    assert before <= {one.name for one in records}
    assert_rewind_and_continue(records)
    assert "backfill" not in healthy.log()


@pytest.mark.parametrize("image", IMAGES)
def test_an_image_has_its_labels_and_the_compiled_walstream(
    engine: Engine, image: str
) -> None:
    (told,) = json.loads(engine.says("image", "inspect", image))
    configured = told["Config"]
    assert configured["User"] == "10001:10001"
    assert configured["StopSignal"] == "SIGTERM"
    assert list(configured["Volumes"]) == ["/var/lib/walstream"]
    labels = configured["Labels"]
    assert labels["org.opencontainers.image.version"] == VERSION
    assert len(labels["org.opencontainers.image.revision"]) == 40
    run = ("run", "--rm", "--network", "none", image)
    assert engine.says(*run, "--version") == f"walstream {VERSION} (compiled)"
    checked = engine.run(*run, "check", check=False)
    assert checked.returncode == 2
    assert "WALSTREAM_DSN" in checked.stdout + checked.stderr


def test_the_image_with_spark_reads_a_backfill_by_it(healthy: Stack) -> None:
    """On a file system that is read alone, with a /tmp from which nothing is run."""
    own = {"SLOT": "spark", "PUBLICATION": "spark"}
    settings = {f"SOURCES__SHOP__{name}": value for name, value in own.items()}
    settings |= {"SPARK__MIN_SIZE": "0", "SINKS__KAFKA__TOPIC": "spark.{table}"}
    words = [f"--env=WALSTREAM__{name}={value}" for name, value in settings.items()]
    (network,) = healthy.inspect()["NetworkSettings"]["Networks"]
    mounts = [
        f"--volume={one['Source'] if one['Type'] == 'bind' else one['Name']}"
        f":{one['Destination']}:ro"
        for one in healthy.inspect("tail")["Mounts"]
        if one["Destination"] != "/var/lib/walstream"
    ]
    confined = ("--read-only", "--tmpfs=/tmp", "--cap-drop=ALL")
    started = ("run", "--rm", f"--network={network}", *confined, *mounts, *words)
    run = healthy.engine.run(*started, IMAGES[1], "run", "--until-lsn", "now")
    events = [json.loads(one) for one in run.stderr.splitlines() if one[:1] == "{"]
    (begun,) = (one for one in events if one["event"] == "backfill begins")
    assert begun["by"] == "Spark"
    records = healthy.records("spark.customers")
    assert [one.new["name"] for one in records if one.new] == [
        "Ann",
        "Bob",
        "Eve",
        "Joe",
    ]
