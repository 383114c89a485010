"""Scenario of a backfill without Spark, at a first start."""

from typing import ClassVar

from tests.callsites.scenario import Scenario, Scene, claim
from tests.support.loads.keyed import TABLE, Load
from tests.support.oracles.table_state import (
    Rows,
    by_arrival,
    by_position,
    in_place,
    rows_of,
)
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.walstream import Walstream


class Backfill(Scenario):
    """Rows of before by the driver, while a writer goes on; then the stream."""

    name: ClassVar[str] = "backfill"
    fill: ClassVar[str] = (
        "ALTER TABLE load ALTER note SET STORAGE EXTERNAL;"
        " INSERT INTO load SELECT w * 1000000 + i, 0, repeat(md5(i::text), 100)"
        " FROM generate_series(0, 1) AS w, generate_series(0, 199) AS i;"
        " CREATE TABLE small (id int PRIMARY KEY, v text);"
        " INSERT INTO small SELECT i, i FROM generate_series(1, 10) AS i"
    )

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._database = scene.database()
        self._database.execute(f"{TABLE}; {self.fill}")
        self._walstream = Walstream(
            self._database.dsn,
            scene.bootstrap,
            scene.folder,
            scene.prefix,
            source={"backfill": "initial"},
            sink={"topic_partitions": 2},
            top={"spark": {}},
        )
        self.service = scene.service(self._walstream)
        self._reader = scene.stack.enter_context(Reader(scene.bootstrap, scene.prefix))

    def act(self) -> None:
        self.scene.tap.arm()
        with Load(self._database.dsn, seed=5, writers=2, pause_s=0.05):
            self.service.start()
            self.wait(
                lambda: self._walstream.said("backfill ended"), "the backfill ends"
            )
        self.wait(self._agree, "all arrives")
        self.stop()

    def settle(self) -> None:
        self.service.tend()
        self._database.execute("INSERT INTO small SELECT max(id) + 1, '' FROM small")
        self.service.until(self._agree, "the topics are the tables")
        self.service.until(
            lambda: not self._walstream.running or self._walstream.said("streaming"),
            "it streams",
        )
        self.service.stop()
        records = self._reader.read()
        claim(self._agree(), "folded by position it is not the tables")
        claim(
            by_arrival(records) == self._rows(), "folded by arrival it is not, either"
        )
        in_place(records)

    def _agree(self) -> bool:
        return by_position(self._reader.read()) == self._rows()

    def _rows(self) -> Rows:
        return rows_of(self._database, "public.load", "public.small")
