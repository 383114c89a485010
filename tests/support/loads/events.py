"""A seeded load on an outbox: events for many topics, and a queue that is emptied.

An event's payload is its number: of its key, one more than that of the event before. So
a reader needs nothing else to see what is missing, or out of order.
"""

import random
from collections import Counter
from functools import partial
from typing import Any, Final, Self

import psycopg

from tests.support.threads import Writers

TABLE: Final = """
CREATE TABLE outbox (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  aggregatetype text NOT NULL, aggregateid text NOT NULL, payload int NOT NULL)
"""
_KEYS: Final = 3  # of each topic, and each writer


class EventLoad(Writers):
    """Writers in threads, whose transactions interleave; some are rolled back."""

    def __init__(self, dsn: str, seed: int, topics: int, writers: int = 3) -> None:
        super().__init__(
            *(partial(self._write, writer, seed, topics) for writer in range(writers))
        )
        self._dsn = dsn
        self.sent: Counter[tuple[str, str]] = Counter()  # events, by topic and key

    def __enter__(self) -> Self:
        super().__enter__()
        self.wait_for_more(1)
        return self

    def _write(self, writer: int, seed: int, topics: int) -> None:
        choose = random.Random(f"{seed}/{writer}")  # noqa: S311 - a test's load
        with psycopg.connect(self._dsn) as connection:
            while not self.leaving.is_set():
                self._transaction(connection, writer, topics, choose)
                self.transactions += 1
                self.leaving.wait(choose.random() * 0.02)

    def _transaction(
        self,
        connection: psycopg.Connection[Any],
        writer: int,
        topics: int,
        choose: random.Random,
    ) -> None:
        made: Counter[tuple[str, str]] = Counter()
        for _ in range(choose.randint(1, 20)):
            key = f"{writer}/{choose.randrange(_KEYS)}"
            place = f"t{choose.randrange(topics)}", key
            made[place] += 1
            row = connection.execute(
                "INSERT INTO outbox (aggregatetype, aggregateid, payload)"
                " VALUES (%s, %s, %s) RETURNING id",
                (*place, self.sent[place] + made[place]),
            ).fetchone()
            connection.execute("DELETE FROM outbox WHERE id = %s", row)
        if choose.random() < 0.1:
            connection.rollback()
        else:
            connection.commit()
            self.sent.update(made)
