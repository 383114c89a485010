"""Scenario of the consumer library: a mirror, with its state in PostgreSQL."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, ClassVar, Final, Self

from tests.callsites.scenario import Rounds, Scene, claim
from tests.support.fixtures.postgres import Database
from tests.support.loads.op_record import ITEM, Feed
from tests.support.oracles.topic_reader import TopicAdmin
from tests.support.programs.fork import ForkServer
from walstream.op import Kind, ReplicationOp

_ENDS_S: Final = 60.0


class MirrorProgram:
    """`python -m consumer mirror` in a process group of its own."""

    def __init__(self, scene: Scene, target: str, topic: str) -> None:
        self.environment: Mapping[str, str] = {}
        self.program = Path(sys.executable)
        self.forks: ForkServer | None = None  # which makes walstreams alone
        self._log_path = scene.folder / "mirror.log"
        self._command = [
            *("-m", "consumer", "mirror", topic),
            *("--group", topic, "--kafka", scene.bootstrap, "--target", target, "-v"),
            # a member that comes back is the same: no wait for its session's end
            *("-X", "group.instance.id=mirror", "-X", "fetch.wait.max.ms=10"),
        ]
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def text(self) -> str:
        return self._log_path.read_text("utf-8", errors="replace")

    def start(self) -> Self:
        self._log = self._log_path.open("ab")
        self._process = subprocess.Popen(
            [self.program, *self._command],
            stdout=self._log,
            stderr=self._log,
            env={**os.environ, **self.environment},
            start_new_session=True,
        )
        return self

    def wait(self, timeout_s: float = _ENDS_S) -> int:
        assert self._process is not None
        assert self._log is not None
        code = self._process.wait(timeout_s)
        self._log.close()
        return code

    def terminate(self, timeout_s: float = _ENDS_S) -> int:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self.wait(timeout_s)

    def close(self) -> None:
        if self._process is not None and self.running:
            self._process.kill()
            self.wait()


class Consumer(Rounds):
    """A mirror of a topic with its state, both in PostgreSQL."""

    name: ClassVar[str] = "consumer"

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._topic = f"{scene.prefix}item"
        TopicAdmin(scene.bootstrap).create(self._topic, 2)
        self._feed = Feed(scene.bootstrap, self._topic)
        self._target: Database = scene.database()
        self._target.execute("CREATE TABLE item (id int PRIMARY KEY, n bigint)")
        program = MirrorProgram(scene, self._target.dsn, self._topic)
        self.service = scene.service(program)
        self._number = 0
        self._rows: dict[int, int] = {}

    def settle(self) -> None:
        self.service.tend()
        self.write()
        self.service.until(self._whole, "the mirror is the source")
        self.service.stop()
        claim(self._whole(), "the mirror is not the source")

    def write(self) -> None:
        """Send inserts, and an update and a delete of rows of before."""
        for _ in range(20):
            self._number += 1
            self._put(Kind.INSERT, self._number, 0)
        self._put(Kind.UPDATE, self._number - 1, self._number)
        self._put(Kind.DELETE, self._number - 2, 0)
        self._feed.flush()

    def _put(self, kind: Kind, key: int, n: int) -> None:
        row: list[Any] = [str(key), str(n)]
        deletes = kind is Kind.DELETE
        op = ReplicationOp(
            kind,
            ITEM,
            self._feed.next_lsn(),
            0,
            old=row if deletes else None,
            new=None if deletes else row,
        )
        self._feed.send(op, key % 2, "app")
        if deletes:
            del self._rows[key]
        else:
            self._rows[key] = n

    def arrive(self) -> None:
        self.wait(self._whole, "the mirror is the source")

    def _whole(self) -> bool:
        return dict(self._target.fetch("SELECT id, n FROM item")) == self._rows
