"""Scenario of records that are passed on from topic to topic."""

from typing import ClassVar

from tests.callsites.scenario import MEMBER, Rounds, Scene, claim
from tests.support.loads.op_record import Feed
from tests.support.oracles.op_order import assert_rewind_and_continue, missing
from tests.support.oracles.topic_reader import Reader, Record, TopicAdmin
from tests.support.programs.relay import Chain, stored


class Relay(Rounds):
    """Records passed on from one topic to another."""

    name: ClassVar[str] = "chain"
    versions: ClassVar[tuple[int, ...]] = (18,)  # PostgreSQL has no part in it

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._topic = f"up_{scene.prefix}t"
        TopicAdmin(scene.bootstrap).create(self._topic, 2)
        self._feed = Feed(scene.bootstrap, self._topic)
        self._chain = Chain(
            scene.bootstrap,
            scene.bootstrap,
            scene.folder,
            scene.prefix,
            topics=[self._topic],
            source={"consumer": MEMBER},
        )
        self.service = scene.service(self._chain)
        enter = scene.stack.enter_context
        self._reader = enter(Reader(scene.bootstrap, f"{scene.prefix}copy."))
        self._upstream = enter(Reader(scene.bootstrap, self._topic))
        self._number = 0

    def settle(self) -> None:
        self._never_ahead()
        self.service.tend()
        self.write()
        self.service.until(self._whole, "all records are passed on")
        self.service.stop()
        self._never_ahead()
        copies = self._reader.read()
        assert_rewind_and_continue(copies)
        shown = {(one.partition, one.key, one.value) for one in copies}
        expected = {(one.partition, one.key, one.value) for one in self._up()}
        claim(shown == expected, "what was passed on is not what came")

    def write(self) -> None:
        for _ in range(20):
            self._number += 1
            self._feed.insert(self._number, self._number % 2)
        self._feed.flush()

    def arrive(self) -> None:
        self.wait(self._whole, "all records are passed on")

    def _whole(self) -> bool:
        return not missing([one.name for one in self._up()], self._reader.read())

    def _up(self) -> list[Record]:
        return self._upstream.read()

    def _never_ahead(self) -> None:
        """Claim that nothing below the group's offsets is missing in the copy."""
        group = f"{self.scene.prefix}group"
        offsets = stored(self.scene.bootstrap, group, self._topic, 2)
        below = [one.name for one in self._up() if one.offset < offsets[one.partition]]
        lost = missing(below, self._reader.read())
        claim(not lost, f"the group's offsets are ahead of {len(lost)} records")
