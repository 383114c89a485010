"""Sixteen writers on one table of MariaDB, whose transactions end in any order.

A conductor gives each what to do, by a seed; they do it in threads of their own. Before
a transaction commits, the position of who polls is looked at: what has a lower key then
commits late, and that is noted.

    with Crew(database) as crew:
        crew.create("t")
        written = crew.play("t", random.Random(7), position)
"""

import random
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

from tests.fix_mariadb import Mariadb
from tests.waiting import wait_until

WRITERS: Final = 16
_STEPS: Final = 100
_LONGEST_S: Final = 60.0

Position = Callable[[], int | None]
"""Gives the key up to which was read, or nothing."""


@dataclass
class Written:
    """What one schedule did."""

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
        self._writers: list[Writer] = []

    def __enter__(self) -> Self:
        self._writers = [Writer(self._database) for _ in range(WRITERS)]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for writer in self._writers:
            writer.close()

    def create(self, table: str) -> None:
        self._database.execute(
            f"CREATE TABLE {table} (id BIGINT AUTO_INCREMENT PRIMARY KEY, v TEXT)"
        )

    def play(
        self,
        table: str,
        dice: random.Random,
        position: Position,
        pause: Callable[[], object] = lambda: None,
    ) -> Written:
        """Do one schedule, to its end; `pause` lets a poll go by.

        One transaction at least commits late: it is open until a later one was read.
        """
        written = Written()
        first, second, *_ = self._writers
        first.insert(table, 1)
        (key,) = first.keys
        second.insert(table, 1)
        second.end(written, position, commits=True)
        wait_until(lambda: (position() or 0) > key, _LONGEST_S, "a later key is read")
        promised: Writer | None = first  # to commit
        for _ in range(_STEPS):
            writer = dice.choice(self._writers)
            if not writer.open or dice.random() < 0.3:
                writer.insert(table, dice.randint(1, 3))
            else:
                commits = writer is promised or dice.random() < 0.75
                writer.end(written, position, commits=commits)
                if writer is promised:
                    promised = None
            if dice.random() < 0.2:
                pause()
        left = [writer for writer in self._writers if writer.open]
        dice.shuffle(left)
        for writer in left:
            writer.end(written, position, commits=True)
        for writer in self._writers:
            writer.wait()
        return written
