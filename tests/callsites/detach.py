"""Scenario of a sink that leaves its source's stream, and comes back."""

import time
from typing import ClassVar, Final

from tests.callsites.scenario import Scene
from tests.callsites.streams import Stream
from tests.support.oracles.op_order import missing
from tests.support.oracles.topic_reader import Reader, TopicAdmin
from tests.support.programs.walstream import Walstream
from walstream.errors import WalstreamError
from walstream.sources.postgres.detached.detached_sink import AWAY, DETACHED
from walstream.state.store import LmdbStore

_OTHER: Final = "other"
_AGAIN_S: Final = 3.0
_SMALL, _ROOMY = "3000", "300000"  # bytes that its topic takes


class Detach(Stream):
    """A sink leaves the stream, catches up apart, and comes back."""

    name: ClassVar[str] = "detach"
    size: ClassVar[int] = 100

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        prefix = f"other_{scene.prefix}"
        self._topic = f"{prefix}public.load"
        self._admin = TopicAdmin(scene.bootstrap)
        self._large = 0  # keys of its large rows
        self._refused_at = 0.0
        self._second = scene.stack.enter_context(Reader(scene.bootstrap, prefix))

    def program(self) -> Walstream:
        other = {
            "topic": f"other_{self.scene.prefix}{{schema}}.{{table}}",
            "topic_partitions": 2,
        }
        return Walstream(
            self.database.dsn,
            self.scene.bootstrap,
            self.scene.folder,
            self.scene.prefix,
            sink={"topic_partitions": 2},
            others={_OTHER: other},
        )

    def act(self) -> None:
        self.begin()
        self.batch()
        self.service.until(self._second.topics, "the other topic is there")
        self._admin.configure(self._topic, "max.message.bytes", _SMALL)
        self.scene.tap.arm()
        self.wait(self._refused, "the sink is away")
        self.batch()
        self._admin.configure(self._topic, "max.message.bytes", _ROOMY)
        self.wait(lambda: not self._phase(), "the sink is back")
        if not self.struck:
            self.batch()
            self.stop()

    def settle(self) -> None:
        self._admin.configure(self._topic, "max.message.bytes", _ROOMY)
        super().settle()
        self.compare(self._second)

    def whole(self) -> bool:
        if not super().whole():
            return False
        if self.scene.tap.armed:
            return True
        assert self.oracle is not None
        return (
            not missing(self.oracle.names(), self._second.read())
            and not self._phase()
            and not self._copies()
        )

    def _refused(self) -> bool:
        """Write what the topic does not take, once its broker knows that."""
        phase = self._phase()
        if not phase and time.monotonic() > self._refused_at + _AGAIN_S:
            self._refused_at = time.monotonic()
            self._large -= 1
            self.database.execute(
                # what a broker measures is compressed
                "INSERT INTO load SELECT %s, 0, string_agg(md5(random()::text), '')"
                " FROM generate_series(1, 600)",
                self._large,
            )
        return phase == AWAY

    def _phase(self) -> str:
        """Read in the state how it is with the sink; "" where it is in the stream."""
        try:
            with LmdbStore.open_read_only(self.walstream.state) as positions:
                note = DETACHED.of(_OTHER).read(positions) if positions else None
        except WalstreamError:
            return "being written"
        return note.phase if note else ""

    def _copies(self) -> int:
        query = (
            "SELECT FROM pg_replication_slots"
            " WHERE starts_with(slot_name, %s) AND slot_name <> %s"
        )
        mine = self.walstream.slot
        return len(self.database.fetch(query, mine, mine))
