"""An open loop of one-row transactions, by loops in the server, and its schedule.

Each writer's transactions are due at fixed times, whatever happened before; a late one
is made up for at once. So what is written does not depend on who reads it.
"""

import threading
import time
from dataclasses import dataclass, field
from typing import Any, Final, Self

import psycopg

from bench.place import Place

TABLE: Final = "load"
CREATE: Final = (
    f"CREATE TABLE {TABLE} (id bigint PRIMARY KEY, a int, at float8, note text)"
)
_PROCEDURE: Final = f"""
CREATE PROCEDURE {TABLE}_written(low bigint, begins float8, rate float8, own int,
  step int, rows int) LANGUAGE plpgsql AS $$
DECLARE early float8;
BEGIN
  FOR n IN 0..rows - 1 LOOP
    LOOP
      early := begins + (n * step + own) / rate
        - extract(epoch FROM clock_timestamp())::float8;
      EXIT WHEN early <= 0;
      PERFORM pg_sleep(early);
    END LOOP;
    INSERT INTO {TABLE} VALUES (low + n * step + own, n,
      extract(epoch FROM clock_timestamp())::float8,
      'some text of about forty characters, yes');
    COMMIT;
  END LOOP;
END $$"""
_WRITERS: Final = 4
_FIRST_IN_S: Final = 0.5


def prepare(place: Place) -> None:
    place.sql(CREATE, _PROCEDURE)


def next_key(place: Place) -> int:
    return int(place.sql(f"SELECT coalesce(max(id), -1) + 1 FROM {TABLE}"))


def written(place: Place, low: int) -> list[tuple[int, float]]:
    """Give key and time of every row from this key on."""
    with psycopg.connect(place.postgres.dsn()) as connection:
        query = f"SELECT id, at FROM {TABLE} WHERE id >= %s ORDER BY id"
        return [(key, at) for key, at in connection.execute(query.encode(), (low,))]


@dataclass
class Load:
    """A run of all writers, in threads that wait for the server."""

    place: Place
    low: int  # the lowest key
    rate: float
    seconds: float
    begins: float = 0.0
    failures: list[Exception] = field(default_factory=list)
    threads: list[threading.Thread] = field(default_factory=list)

    @property
    def rows(self) -> int:
        return max(int(self.rate * self.seconds) // _WRITERS, 1) * _WRITERS

    def due(self, key: int) -> float:
        return self.begins + (key - self.low) / self.rate

    def due_by(self, moment: float) -> int:
        """How many rows should be written by then."""
        return min(int((moment - self.begins) * self.rate), self.rows)

    def _write(self, own: int) -> None:
        try:
            with psycopg.connect(self.place.postgres.dsn(), autocommit=True) as one:
                each = self.rows // _WRITERS
                told: tuple[Any, ...] = (
                    *(self.low, self.begins, self.rate),
                    *(own, _WRITERS, each),
                )
                one.execute(
                    f"CALL {TABLE}_written(%s, %s, %s, %s, %s, %s)".encode(), told
                )
        except psycopg.Error as error:
            self.failures.append(error)

    def __enter__(self) -> Self:
        self.begins = time.time() + _FIRST_IN_S
        self.threads = [
            threading.Thread(target=self._write, args=(own,), daemon=True)
            for own in range(_WRITERS)
        ]
        for thread in self.threads:
            thread.start()
        return self

    def wait(self) -> None:
        for thread in self.threads:
            thread.join()
        if self.failures:
            raise SystemExit(f"the writer failed: {self.failures[0]}")

    def __exit__(self, *_: object) -> None:
        for thread in self.threads:
            thread.join(5)
