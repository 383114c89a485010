"""Sixteen writers on one table of MariaDB, whose transactions end in any order.

A conductor gives each what to do, by a seed; they do it in threads of their own. Before
a transaction commits, the position of who polls is looked at: what has a lower key then
commits late, and that is noted.

    with Crew(database) as crew:
        written = crew.play("t", random.Random(7), position)

    with Load(database, "t", seed=7) as load:     # until it is left, over any outage
        load.wait_for_more()
"""

import random
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

import pymysql

from tests.support.deadline import wait_until
from tests.support.fixtures.mariadb import Mariadb
from tests.support.threads import Threads

WRITERS: Final = 16
_STEPS: Final = 100
_PAUSE_S: Final = 0.003
_LONGEST_S: Final = 60.0

Position = Callable[[], int | None]
"""Gives the key up to which was read, or nothing."""


@dataclass
class Written:
    """What was done."""

    committed: set[int] = field(default_factory=set)
    late: set[int] = field(default_factory=set)  # of those: read past before
    rolled_back: set[int] = field(default_factory=set)


class Writer:
    """One session, and the transaction that is open in it."""

    def __init__(self, database: Mariadb) -> None:
        self._connection = database.connect()
        self._thread = ThreadPoolExecutor(1)
        self._under_way: Future[None] | None = None
        self._keys: list[int] = []
        self.open = False

    def insert(self, table: str, rows: int) -> None:
        self.open = True
        self._do(lambda: self._insert(table, rows))

    def end(self, written: Written, position: Position, *, commits: bool) -> None:
        self.open = False
        self._do(lambda: self._end(written, position, commits=commits))

    def wait(self) -> None:
        """See that the last thing is done."""
        if self._under_way is not None:
            self._under_way.result(_LONGEST_S)

    def close(self) -> None:
        self._thread.shutdown()
        with suppress(pymysql.Error):  # closed, with its server
            self._connection.close()

    @property
    def keys(self) -> list[int]:
        """Those that its transaction has drawn."""
        self.wait()
        return self._keys

    def _do(self, what: Callable[[], None]) -> None:
        self.wait()
        self._under_way = self._thread.submit(what)

    def _insert(self, table: str, rows: int) -> None:
        with self._connection.cursor() as cursor:
            for _ in range(rows):
                cursor.execute(f"INSERT INTO {table} (v) VALUES ('x')")  # noqa: S608
                self._keys.append(cursor.lastrowid)

    def _end(self, written: Written, position: Position, *, commits: bool) -> None:
        keys, self._keys = self._keys, []
        if not commits:
            self._connection.rollback()
            written.rolled_back.update(keys)
            return
        passed = position()
        self._connection.commit()
        written.committed.update(keys)
        if passed is not None:
            written.late.update(key for key in keys if key <= passed)


class Crew:
    """The writers, for one schedule after the other."""

    def __init__(self, database: Mariadb) -> None:
        self._database = database
        self.writers: list[Writer] = []

    def __enter__(self) -> Self:
        self.writers = [Writer(self._database) for _ in range(WRITERS)]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for writer in self.writers:
            writer.close()

    def play(
        self,
        table: str,
        dice: random.Random,
        position: Position,
        pause: Callable[[], object],
    ) -> Written:
        """Do one schedule, to its end; `pause` lets a poll go by.

        One transaction at least commits late: it is open until a later one was read.
        """
        written = Written()
        promised = self._leave_behind(table, written, position)
        for _ in range(_STEPS):
            if self.step(table, dice, written, position, promised) is promised:
                promised = None
            if dice.random() < 0.2:
                pause()
        self.end(dice, written, position)
        return written

    def _leave_behind(
        self, table: str, written: Written, position: Position
    ) -> Writer | None:
        first, second, *_ = self.writers
        first.insert(table, 1)
        (key,) = first.keys
        second.insert(table, 1)
        second.end(written, position, commits=True)
        wait_until(lambda: (position() or 0) > key, _LONGEST_S, "a later key is read")
        return first

    def step(
        self,
        table: str,
        dice: random.Random,
        written: Written,
        position: Position,
        promised: Writer | None = None,
    ) -> Writer | None:
        """Let one go on; give it if its transaction ended. `promised` commits."""
        writer = dice.choice(self.writers)
        if not writer.open or dice.random() < 0.3:
            writer.insert(table, dice.randint(1, 3))
            return None
        commits = writer is promised or dice.random() < 0.75
        writer.end(written, position, commits=commits)
        return writer

    def end(self, dice: random.Random, written: Written, position: Position) -> None:
        """Commit what is open."""
        left = [writer for writer in self.writers if writer.open]
        dice.shuffle(left)
        for writer in left:
            writer.end(written, position, commits=True)
        for writer in self.writers:
            writer.wait()


class Load(Threads):
    """Writes on and on; it outlives a server that goes away and comes back."""

    def __init__(self, database: Mariadb, table: str, seed: int) -> None:
        super().__init__(self._write)
        self._database = database
        self._table = table
        self._dice = random.Random(seed)  # noqa: S311 - a test's load
        self._written = Written()

    def __enter__(self) -> Self:
        super().__enter__()
        self.wait_for_more(1)
        return self

    def wait_for_more(self, rows: int = 50) -> None:
        """Wait until so many further rows were committed."""
        wanted = len(self._written.committed) + rows
        wait_until(
            lambda: self.failures or len(self._written.committed) >= wanted,
            _LONGEST_S,
            "it writes",
        )

    def _write(self) -> None:
        while not self.leaving.is_set():
            with suppress(pymysql.OperationalError), Crew(self._database) as crew:
                while not self.leaving.wait(_PAUSE_S):
                    crew.step(self._table, self._dice, self._written, _nowhere)
                crew.end(self._dice, self._written, _nowhere)
            self.leaving.wait(0.1)


def create(database: Mariadb, table: str) -> None:
    database.execute(
        f"CREATE TABLE {table} (id BIGINT AUTO_INCREMENT PRIMARY KEY, v TEXT)"
    )


def _nowhere() -> None:
    return None
