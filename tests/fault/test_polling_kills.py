"""Whatever of a poll is killed, under load: no row is missing, and few come again.

Sixteen writers go on meanwhile; their transactions end in any order, so that rows
commit late in any run. A kill comes when rows of a catch-up are on their way.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil
import pytest

from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.mariadb import Mariadb, OwnMariadb
from tests.support.loads.mariadb import Load, create
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.polled_source import Polled
from walstream.formats.row import PolledRow, row_hash
from walstream.testing.servers import LocalMariadb

pytestmark = pytest.mark.fault
LIMIT: Final = 12_000  # rows of a poll, by Spark: what a kill may repeat
CATCH_UP: Final = 3 * LIMIT  # rows
LONGEST_S: Final = 150.0
JVM, DRIVER, DAEMON = "org.apache.spark", "walstream.spark.driver", "pyspark.daemon"


@dataclass
class Seen:
    """What reached Kafka, in a topic of one partition."""

    reader: Reader
    hashes: dict[int, str] = field(default_factory=dict)  # by key
    repeats: int = 0
    late: int = 0  # keys that came first after a greater one
    _looked_at: int = 0  # records

    def look(self) -> None:
        highest = max(self.hashes, default=0)
        for record in self.reader.read()[self._looked_at :]:
            row: PolledRow = record.op  # type: ignore[assignment]
            key = row.data["id"]
            assert row.hash == row_hash(row.data)
            if key in self.hashes:
                self.repeats += 1
                assert self.hashes[key] == row.hash
                continue
            self.hashes[key] = row.hash
            self.late += key < highest
            highest = max(highest, key)
        self._looked_at = len(self.reader.records)

    def until(self, key: int) -> None:
        def there() -> bool:
            self.look()
            return key in self.hashes

        wait_until(there, LONGEST_S, f"key {key} arrives")


@dataclass
class Scene:
    server: LocalMariadb
    database: Mariadb
    polled: Polled
    seen: Seen

    def catch_up(self) -> int:
        """Write many rows, and see the first of them arrive; give the last key."""
        before = self.seen.reader.ends()
        self.database.execute(
            f"INSERT INTO t (v) SELECT REPEAT('b', 100) FROM seq_1_to_{CATCH_UP}"  # noqa: S608 - a number
        )
        ((last,),) = self.database.fetch("SELECT MAX(id) FROM t")
        wait_until(
            lambda: self.seen.reader.ends() > before + LIMIT // 2,
            LONGEST_S,
            "it catches up",
        )
        return int(last)


@pytest.fixture
def scene(
    own_mariadb: OwnMariadb, kafka: KafkaServer, topic_prefix: str, tmp_path: Path
) -> Iterator[Scene]:
    server = own_mariadb()
    Mariadb(server).execute("CREATE DATABASE shop")
    database = Mariadb(server, "shop")
    create(database, "t")
    polled = Polled(
        database.url,
        kafka.bootstrap,
        tmp_path,
        topic_prefix,
        source={"poll_interval": "50ms"},
        sink={"topic_partitions": 1},
        tables={"t": {"limit": LIMIT}},
    )
    with polled.reader() as reader:
        yield Scene(server, database, polled.start(), Seen(reader))
        polled.close()


def end(processes: list[psutil.Process]) -> None:
    """SIGKILL them; see that they were there, and are gone."""
    assert processes
    for one in processes:
        with suppress(ProcessLookupError):  # it ended since it was listed
            os.kill(one.pid, signal.SIGKILL)
    wait_until(lambda: all(map(_is_gone, processes)), 10, "they are gone")


def _is_gone(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def kill_all(scene: Scene) -> None:
    pid = scene.polled.pid
    scene.polled.kill()
    assert not psutil.pid_exists(pid)
    scene.polled.start()


def kill_worker(scene: Scene) -> None:
    pid = scene.polled.worker_pid()
    end([psutil.Process(pid)])
    wait_until(lambda: scene.polled.workers() not in ([], [pid]), 30, "another runs")


def kill_mariadb(scene: Scene) -> None:
    pid = scene.server.pid
    scene.server.kill()
    scene.polled.until("trying again")
    assert len(scene.polled.processes(JVM)) == 1  # Spark stays
    scene.server.start()
    assert scene.server.pid != pid


def kill_python_workers(scene: Scene) -> None:
    daemons = scene.polled.processes(DAEMON)
    parents = {one.pid for one in daemons}
    end([one for one in daemons if _parent(one) in parents])


def _parent(process: psutil.Process) -> int:
    """Give 0 for one that ended since it was listed."""
    try:
        return process.ppid()
    except psutil.NoSuchProcess:
        return 0


def kill(word: str) -> Callable[[Scene], None]:
    def kill_those(scene: Scene) -> None:
        end(scene.polled.processes(word))

    return kill_those


KILLS: Final = {
    "a Python worker": kill_python_workers,
    "MariaDB": kill_mariadb,
    "all of walstream": kill_all,
}
RARER: Final = {
    "walstream's worker": kill_worker,
    "the driver": kill(DRIVER),
    "Java": kill(JVM),
    "Spark's daemon": kill(DAEMON),
}


def nothing_is_missing(
    scene: Scene, kills: list[tuple[str, Callable[[Scene], None]]]
) -> None:
    seen = scene.seen
    with Load(scene.database, "t", seed=len(kills)) as load:
        for name, kill_it in kills:
            load.wait_for_more(200)  # some of them late
            last = scene.catch_up()
            seen.look()
            before = seen.repeats
            kill_it(scene)
            seen.until(last)
            assert seen.repeats - before <= LIMIT, name
    there = {key for (key,) in scene.database.fetch("SELECT id FROM t")}

    def arrived() -> bool:
        seen.look()
        return there <= seen.hashes.keys()

    wait_until(arrived, LONGEST_S, "all rows arrive")
    assert seen.late
    wait_until(
        lambda: len(scene.polled.processes(DRIVER)) == 1, LONGEST_S, "there is a driver"
    )


@pytest.mark.fault_long
@pytest.mark.takes(40)
def test_no_row_is_missing_whatever_is_killed_under_load(scene: Scene) -> None:
    nothing_is_missing(scene, list(KILLS.items()))


@pytest.mark.fault_long
@pytest.mark.takes(600)
def test_no_row_is_missing_over_cycles_of_kills(scene: Scene) -> None:
    nothing_is_missing(scene, 3 * [*KILLS.items(), *RARER.items()])
