"""Scenario of polled tables."""

from typing import Any, ClassVar

import psycopg

from tests.callsites.scenario import Rounds, Scene, claim
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.polled_source import Polled
from tests.support.programs.table_read import postgres_url
from walstream.formats.row import decode


class Poll(Rounds):
    """Polled rows, of which some commit late and some never."""

    name: ClassVar[str] = "poll"

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._database = scene.database()
        self._database.execute("CREATE TABLE t (id serial PRIMARY KEY, v text)")
        self._polled = Polled(
            postgres_url(self._database.dsn),
            scene.bootstrap,
            scene.folder,
            scene.prefix,
            sink={"topic_partitions": 2},
            top={"spark": {}},
            tables={"t": {}},
        )
        self.service = scene.service(self._polled)
        reader = Reader(scene.bootstrap, scene.prefix, decode)
        self._reader = scene.stack.enter_context(reader)

    def settle(self) -> None:
        self.service.tend()
        self.write_more()
        self.service.until(self._whole, "all rows arrive")
        self.service.stop()
        rows = {one.op.data["id"]: one.op.data for one in self._records()}
        table = dict(self._database.fetch("SELECT id, v FROM t"))
        found = {key: row["v"] for key, row in rows.items()}
        claim(found == table, "the topic is not the table")

    def write(self) -> None:
        self._database.execute(
            "INSERT INTO t (v) SELECT i FROM generate_series(1, 5) i"
        )

    def write_more(self) -> None:
        """Commit a smaller key behind a greater one, and one never."""
        with psycopg.connect(self._database.dsn) as late:
            late.execute("INSERT INTO t (v) VALUES ('late')")
            self.write()
            self.arrive()
        with psycopg.connect(self._database.dsn) as never:
            never.execute("INSERT INTO t (v) VALUES ('never')")
            never.rollback()
        self.write()

    def arrive(self) -> None:
        self.wait(self._whole, "all rows arrive")

    def _whole(self) -> bool:
        keys = {one.op.data["id"] for one in self._records()}
        return {key for (key,) in self._database.fetch("SELECT id FROM t")} <= keys

    def _records(self) -> Any:
        return self._reader.read()
