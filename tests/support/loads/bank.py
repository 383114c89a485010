"""Transfers between accounts, in tables that reference each other, and what must hold.

No statement may be seen alone: the first entry of a transfer is there before the
transfer, and the balances move one after the other.
"""

# ruff: noqa: S608 - SQL of constants

import random
from collections.abc import Iterator
from functools import partial
from itertools import count, islice
from typing import Any, Final

import psycopg

from tests.support.fixtures.postgres import Database
from tests.support.threads import Threads, Writers

ACCOUNTS: Final = 40
OPENING: Final = 1000
_AWAY_S: Final = 0.05  # until it is asked again whether the server is back
TABLES: Final = """
CREATE TABLE account (id int PRIMARY KEY, balance int NOT NULL);
CREATE TABLE transfer (id bigint PRIMARY KEY, note text,
  source int NOT NULL REFERENCES account DEFERRABLE,
  target int NOT NULL REFERENCES account DEFERRABLE);
CREATE TABLE entry (transfer bigint, account int, amount int NOT NULL,
  PRIMARY KEY (transfer, account),
  FOREIGN KEY (transfer) REFERENCES transfer DEFERRABLE INITIALLY DEFERRED,
  FOREIGN KEY (account) REFERENCES account DEFERRABLE);
ALTER TABLE transfer ADD FOREIGN KEY (id, source) REFERENCES entry (transfer, account)
  DEFERRABLE INITIALLY DEFERRED;
"""
NAMES: Final = ("account", "transfer", "entry")
OPEN: Final = (
    f"INSERT INTO account SELECT i, {OPENING} FROM generate_series(1, {ACCOUNTS}) i"
)
_HOLDS: Final = f"""
SELECT (SELECT count(*) FROM account) AS accounts,
  (SELECT sum(balance) FROM account) = {ACCOUNTS * OPENING} AS sum,
  (SELECT bool_and(balance = {OPENING} + coalesce(
     (SELECT sum(amount) FROM entry WHERE entry.account = account.id), 0))
     FROM account) AS balances,
  (SELECT coalesce(sum(amount), 0) FROM entry) = 0 AS entries,
  (SELECT count(*) FROM entry) = 2 * (SELECT count(*) FROM transfer) AS pairs,
  (SELECT count(*) FROM transfer)
"""


class Transfers(Writers):
    """Four writers: transfers, some of them taken back, some of many at once.

    They connect again when the server is back.
    """

    def __init__(self, database: Database, seed: int, pause_s: float = 0.02) -> None:
        """`pause_s` is the longest one between two transactions of a writer."""
        super().__init__(*(partial(self._write, number) for number in range(4)))
        self._database = database
        self._seed = seed
        self._pause_s = pause_s

    def _write(self, writer: int) -> None:
        choose = random.Random(f"{self._seed}/{writer}")  # noqa: S311
        numbers = count(writer, 4)  # of no use twice: a lost commit may be one
        while not self.leaving.is_set():
            try:
                with psycopg.connect(self._database.dsn) as connection:
                    self._write_by(connection, choose, numbers)
            except psycopg.OperationalError:
                self.leaving.wait(_AWAY_S)

    def _write_by(
        self, connection: Any, choose: random.Random, numbers: Iterator[int]
    ) -> None:
        while not self.leaving.is_set():
            many = choose.choice([1] * 20 + [60])
            dice = choose.random()
            try:
                with connection.transaction():
                    if dice < 0.01:
                        _start_anew(connection)
                        continue
                    for number in islice(numbers, many):
                        _transfer(connection, choose, number)
                    if dice < 0.2:
                        _take_back(connection, number - 4 * choose.randrange(40))
            except psycopg.errors.DeadlockDetected:
                continue
            self.transactions += 1
            self.leaving.wait(choose.random() * self._pause_s)


def _transfer(connection: Any, choose: random.Random, number: int) -> None:
    first, second = choose.sample(range(1, ACCOUNTS + 1), 2)
    amount = choose.randint(1, 50)
    add = "INSERT INTO entry VALUES (%s, %s, %s)"
    connection.execute(add, (number, first, -amount))
    move = "UPDATE account SET balance = balance + %s WHERE id = %s"
    connection.execute(move, (-amount, first))
    connection.execute(
        "INSERT INTO transfer VALUES (%s, %s, %s, %s)", (number, "x", first, second)
    )
    connection.execute(move, (amount, second))
    connection.execute(add, (number, second, amount))


def _take_back(connection: Any, number: int) -> None:
    connection.execute(
        "UPDATE account SET balance = balance - amount FROM entry"
        " WHERE entry.account = account.id AND transfer = %s",
        (number,),
    )
    connection.execute("DELETE FROM transfer WHERE id = %s", (number,))
    connection.execute("DELETE FROM entry WHERE transfer = %s", (number,))


def _start_anew(connection: Any) -> None:
    connection.execute("TRUNCATE transfer, entry")
    connection.execute(f"UPDATE account SET balance = {OPENING}")


class Witness(Threads):
    """Looks at a database all the time: what it sees at any moment must hold.

    It connects again when the server is back.
    """

    def __init__(self, database: Database) -> None:
        super().__init__(self._look)
        self._database = database
        self.looks = 0  # since all accounts are there
        self.seen: set[int] = set()  # numbers of transfers

    def _look(self) -> None:
        while not self.leaving.is_set():
            try:
                with psycopg.connect(self._database.dsn, autocommit=True) as connection:
                    self._look_by(connection)
            except psycopg.OperationalError:
                self.leaving.wait(_AWAY_S)

    def _look_by(self, connection: Any) -> None:
        while not self.leaving.is_set():
            found: Any = connection.execute(_HOLDS).fetchone()
            accounts, *holds, transfers = found
            if accounts < ACCOUNTS and not self.looks:
                assert transfers == 0, "rows of before come first"
                continue
            assert accounts == ACCOUNTS
            assert all(holds), found
            self.looks += 1
            self.seen.add(transfers)


def contents(database: Database) -> list[list[tuple[Any, ...]]]:
    """Return all rows of each table."""
    return [database.fetch(f"SELECT * FROM {name} ORDER BY 1, 2") for name in NAMES]
