"""Choice of the partitions to fetch, so that all inboxes keep one budget of bytes.

librdkafka drops what it fetched of a partition that is paused, and fetches it again:
so a moment of waiting comes before, and partitions are resumed by as many as there is
room for. What was taken from librdkafka and finds no room is dropped, and sought later.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol

from confluent_kafka import KafkaException, Message, TopicPartition

from consumer.group.assigned_partition import AssignedPartition, Place
from consumer.group.buffer import Budget, size
from walstream.telemetry import runtime

_CHUNK: Final = 5000  # messages at once, since each time costs the interpreter's lock
_TIGHT: Final = 8  # this part of the budget is too little room
_ROOM: Final = 4  # and this part enough to fetch again
_FETCH: Final = 1 << 20  # bytes that a partition sends at once, mostly
_WAIT_S: Final = 0.1
_PATIENCE_S: Final = 0.5  # without room, before the partitions are paused
_STARVED_S: Final = 1.0  # without a message, before others have to make room
_log = logging.getLogger(__name__)


class Paused(Protocol):
    """The methods of a Kafka consumer that are needed here."""

    def pause(self, partitions: list[TopicPartition]) -> None: ...

    def resume(self, partitions: list[TopicPartition]) -> None: ...

    def seek(self, partition: TopicPartition) -> None: ...


class FetchBudget:
    """Used by the fetcher's thread alone."""

    def __init__(
        self,
        consumer: Paused,
        budget: Budget,
        lanes: Mapping[Place, AssignedPartition],
        woken: threading.Event,
        clock: Callable[[], float] = runtime.monotonic,
    ) -> None:
        self._consumer = consumer
        self._budget = budget
        self._lanes = lanes
        self._woken = woken
        self._clock = clock
        self._paused: dict[AssignedPartition, float] = {}  # since when, in that order
        self._shed: set[AssignedPartition] = set()  # paused till they have nothing
        self._forced: set[AssignedPartition] = (
            set()
        )  # next message is taken in any case
        self._tight_since: float | None = None
        self._next_shed = 0.0
        self._message_size = 1024.0  # on average, lately

    def put(self, lane: AssignedPartition, messages: Sequence[Message]) -> None:
        """Hand a lane its messages; what has no room is fetched again later."""
        if lane.wanted_offset is not None or lane.cut is not None:
            return
        average = size(messages) / len(messages)
        self._message_size = max(average, (self._message_size * 7 + average) / 8)
        count = lane.put(messages, force=lane in self._forced)
        self._forced.discard(lane)
        if count < len(messages):
            lane.cut = messages[count].offset()
            self._pause([lane])

    def forget(self, lanes: Sequence[AssignedPartition]) -> None:
        """Leave partitions that are no longer assigned as they were found."""
        paused = [lane for lane in lanes if self._paused.pop(lane, None) is not None]
        self._shed.difference_update(lanes)
        self._forced.difference_update(lanes)
        if paused:
            try:
                self._consumer.resume([TopicPartition(*lane.place) for lane in paused])
            except KafkaException as error:
                _log.debug("resuming what was revoked: %s", error)

    def most(self) -> int:
        """Return how many messages to take now; 0: none yet, after a moment's wait."""
        free, part = self._budget.free, self._budget.most // _TIGHT
        if free > self._budget.most * 3 // 4:  # and so none holds much
            self._tight_since = None
            return self._fitting(free // 4)
        lanes = [lane for lane in self._lanes.values() if lane not in self._paused]
        tight = [
            lane
            for lane in lanes
            if lane.inbox.bytes > 0 and free - lane.inbox.bytes < part
        ]
        if tight:
            now = self._clock()
            if self._tight_since is None:
                self._tight_since = now
            if now - self._tight_since < _PATIENCE_S:
                self._woken.wait(_WAIT_S)
                return 0
            self._pause(tight)
            lanes = [lane for lane in lanes if lane not in self._paused]
        self._tight_since = None
        most = max((lane.inbox.bytes for lane in lanes), default=0)
        return self._fitting((free - most) // 2)

    def _fitting(self, room: int) -> int:
        return max(1, min(_CHUNK, int(room / self._message_size)))

    def resume(self) -> None:
        """Fetch those again for which there is room, who waits longest first."""
        if not self._paused:
            return
        spare, part = self._budget.free, self._budget.most // _ROOM
        now = self._clock()
        ready: list[AssignedPartition] = []
        starved: list[AssignedPartition] = []
        for lane, since in self._paused.items():
            held = lane.inbox.bytes
            if held > 0 and lane in self._shed:
                continue
            if spare - held >= part:
                ready.append(lane)
                spare -= _FETCH
            elif held == 0 and now - since >= _STARVED_S:
                starved.append(lane)
        if starved and not ready and now >= self._next_shed:
            self._next_shed = now + _STARVED_S
            self._make_room()
            if self._budget.free < part:
                ready = starved[:1]  # all is in hand: let it have one message
                self._forced.update(ready)
        self._fetch_again(ready)

    def _make_room(self) -> None:
        """Drop what waits in others, down to a fair part, for who has nothing."""
        keep = self._budget.most // _ROOM // max(1, len(self._lanes))
        shed = []
        for lane in self._lanes.values():
            if lane.inbox.bytes > keep and lane.wanted_offset is None:
                dropped = lane.inbox.shed(keep)
                if dropped is not None:
                    lane.cut = dropped
                    shed.append(lane)
        self._pause(shed)
        self._shed.update(shed)

    def _pause(self, lanes: Sequence[AssignedPartition]) -> None:
        if not lanes:
            return
        self._consumer.pause([TopicPartition(*lane.place) for lane in lanes])
        now = self._clock()
        for lane in lanes:
            self._paused.pop(lane, None)  # those that lack something stand in order
            self._paused[lane] = now

    def _fetch_again(self, lanes: Iterable[AssignedPartition]) -> None:
        resumed = [lane for lane in lanes if self._sought(lane)]
        if resumed:
            self._consumer.resume([TopicPartition(*lane.place) for lane in resumed])
            for lane in resumed:
                del self._paused[lane]
                self._shed.discard(lane)

    def _sought(self, lane: AssignedPartition) -> bool:
        """Go back to what had no room; False: not yet."""
        offset = lane.cut
        if offset is None or lane.wanted_offset is not None:
            return True
        try:
            self._consumer.seek(TopicPartition(*lane.place, offset))
        except KafkaException as error:
            _log.debug("seeking in %s: %s", lane.place, error)
            return False
        lane.cut = None
        return True
