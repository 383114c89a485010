"""Fetches from Kafka for all assigned partitions, in the thread that runs the consumer.

One Consumer, polled all the time, so that a handler that blocks for minutes loses no
membership. Only this thread talks about offsets: what a lane of an earlier assignment
still reports is never stored (a stale offset would skip records).
"""

import logging
import math
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Final

from confluent_kafka import (
    Consumer,
    KafkaException,
    Message,
    TopicPartition,
)

from consumer.group.assigned_partition import AssignedPartition, Place, Work
from consumer.group.assignment_text import assignment_text
from consumer.group.broker_outage import OutageLog
from consumer.group.buffer import Budget
from consumer.group.client_close import LEAVE_S, left
from consumer.group.fetch_error import StartTrouble, meet_fetch_error
from consumer.group.flow import FetchBudget
from consumer.group.settings import (
    ClientProperties,
    fetch_settings,
    max_poll_interval_s,
    subscriptions,
)
from consumer.group.thread_pool import Pool
from consumer.group.topic_start import TopicStart
from walstream.telemetry import runtime

_POLL_S: Final = 0.1
_ASK_INTERVAL_S: Final = 0.5
_BACK_S: Final = 0.5
_STORE_INTERVAL_S: Final = 0.2
_REVOKE_SHARE: Final = 0.5  # of max.poll.interval.ms
_log = logging.getLogger(__name__)


class Fetcher:
    """One membership of a group, from its first poll to its close."""

    def __init__(  # noqa: PLR0913 - what a member is made of
        self,
        settings: ClientProperties,
        topics: Sequence[str],
        make_work: Callable[[AssignedPartition], Work],
        stop: threading.Event,
        *,
        stop_timeout_s: float,
        threads: int | None,
        start: TopicStart | None = None,
    ) -> None:
        """`start` tells the lanes where they begin; None: their work knows."""
        self._make_work = make_work
        self._stop = stop
        self._stop_timeout_s = stop_timeout_s
        self._stop_by = math.inf
        self._topics = list(topics)
        self._subscriptions = subscriptions(topics, settings)
        self._group = settings["group.id"]
        self._said = ""  # what it reads, as it was logged last
        self._start = start
        self._next_start = 0.0
        self._start_trouble = StartTrouble()
        self._patience_s = max_poll_interval_s(settings) * _REVOKE_SHARE
        self._lanes: dict[Place, AssignedPartition] = {}
        self._former: dict[Place, AssignedPartition] = {}  # revoked, but still running
        self._ends: dict[Place, tuple[int, int]] = {}
        self._woken = threading.Event()
        self._unsought = False  # a lane's seek has to be tried again
        self._next_store = 0.0
        self._closing = False
        self._outage = OutageLog(logging.getLogger("consumer.librdkafka"))
        hearing = self._outage.hearing(settings.get("error_cb"))
        self._consumer = Consumer(
            {**fetch_settings(settings), "error_cb": hearing}, logger=self._outage
        )
        self._pool = Pool(threads)
        self._budget = Budget(drained=self.wake)
        self._flow = FetchBudget(self._consumer, self._budget, self._lanes, self._woken)

    def run(self) -> None:
        """Fetch until told to stop; raise what stopped a lane."""
        _log.info("group %s: joining, to read %s", self._group, ", ".join(self._topics))
        try:
            self._consumer.subscribe(
                self._subscriptions,
                on_assign=self._assigned,
                on_revoke=self._revoked,
                on_lost=self._lost,
            )
            while not self._stop.is_set():
                self._attend()
                self._begin_lanes()
                self._flow.resume()
                self._store()
                most = self._flow.most()
                if most:
                    self._fetch(most)
                if self._outage.is_to_ask():
                    self._ask_whether_back()
        finally:
            lanes = self._close()
        _raise_failure(lanes)

    def lag(self) -> dict[Place, int]:
        """How many records each assigned partition has yet to handle.

        As it was known a moment ago; of a partition that was not fetched yet, nothing.
        """
        found = {}
        ends = self._ends
        for place, lane in list(self._lanes.items()):
            reached = lane.reached
            if place in ends and reached is not None:
                low, high = ends[place]
                found[place] = max(0, high - max(low, reached))
        return found

    def wake(self) -> None:
        self._woken.set()

    def stop(self) -> None:
        """Let no lane begin another op: sooner than `run` sees that it is to stop."""
        for lane in list(self._lanes.values()):
            lane.stop()
        self.wake()

    def _fetch(self, most: int) -> None:
        # waiting, consume() would wait for as many as it is asked for
        messages = self._consumer.consume(most, timeout=0)
        if not messages:
            first = self._consumer.poll(_POLL_S)
            messages = [] if first is None else [first]
        chunks: dict[tuple[str | None, int | None], list[Message]] = {}
        for message in messages:
            key = (message.topic(), message.partition())
            chunk = chunks.get(key)
            if message.error() is not None:
                meet_fetch_error(message)
            elif chunk is None:
                chunks[key] = [message]
            else:
                chunk.append(message)
        for (topic, number), messages in chunks.items():
            lane = self._lanes.get(Place(topic or "", number or 0))
            if lane is not None:
                self._flow.put(lane, messages)

    def _begin_lanes(self) -> None:
        """Let lanes begin where the group does; ask again where that is not known."""
        if self._start is None:
            return
        new = [place for place, lane in self._lanes.items() if lane.begins is None]
        now = runtime.monotonic()
        if not new or now < self._next_start:
            return
        self._next_start = now + _ASK_INTERVAL_S
        try:
            found = self._start.offsets(self._consumer, new, self._lanes)
        except KafkaException as error:
            self._start_trouble.meet(error.args[0])
            return
        self._start_trouble.end()
        for place, offset in found.items():
            lane = self._lanes[place]
            lane.begins = offset
            lane.urge()

    def _ask_whether_back(self) -> None:
        with suppress(KafkaException):
            topic = self._subscriptions[0]
            if topic.startswith("^"):
                self._consumer.list_topics(timeout=_BACK_S)
            else:
                self._consumer.list_topics(topic, timeout=_BACK_S)
            self._outage.end()

    def _attend(self) -> None:
        """See to what the lanes asked for; raise what stopped one."""
        if not self._woken.is_set() and not self._unsought:
            return
        self._woken.clear()
        _raise_failure([*self._lanes.values(), *self._former.values()])
        self._unsought = False
        self._seek()

    def _seek(self) -> None:
        for place, lane in self._lanes.items():
            offset = lane.wanted_offset
            if offset is None:
                continue
            try:
                self._consumer.seek(TopicPartition(*place, offset))
            except KafkaException as error:
                # not fetched yet: librdkafka still asks for the stored offset
                _log.debug("seeking in %s: %s", place, error)
                self._unsought = True
                continue
            lane.inbox.clear()
            lane.cut = None
            lane.sought()

    def _store(self) -> None:
        now = runtime.monotonic()
        if now >= self._next_store:
            self._next_store = now + _STORE_INTERVAL_S
            self._store_all(self._lanes.values())
            self._ends = {
                place: (low, high)
                for place in self._lanes
                for low, high in [self._known_bounds(place)]
                if high >= 0
            }

    def _known_bounds(self, place: Place) -> tuple[int, int]:
        """Ask librdkafka, not the broker: -1001 before the first fetch."""
        # only here: a call of another thread would wait for this one's polls to end
        return self._consumer.get_watermark_offsets(TopicPartition(*place), cached=True)

    def _store_all(self, lanes: Iterable[AssignedPartition]) -> None:
        for lane in lanes:
            offset = lane.handled
            if offset is None or offset == lane.stored:
                continue
            try:
                self._consumer.store_offsets(
                    offsets=[TopicPartition(*lane.place, offset)]
                )
            except KafkaException as error:
                _log.warning("storing an offset of %s: %s", lane.place, error)
            else:
                lane.stored = offset

    def _assigned(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        if self._closing:
            return
        if not partitions:
            self._log_assignment()
            return
        for one in partitions:
            place = Place(one.topic, one.partition)
            lane = AssignedPartition(place, self.wake, self._budget)
            _log.debug("assigned %s", place)
            former = self._former.pop(place, None)
            lane.start(self._make_work(lane), self._pool, former)
            self._lanes[place] = lane  # from here on another thread may stop it
        self._next_start = 0.0
        self._log_assignment()

    def _log_assignment(self) -> None:
        text = assignment_text(self._lanes)
        if text != self._said and not self._stop.is_set():
            self._said = text
            _log.info("group %s: reading %s", self._group, text)

    def _revoked(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        lanes = self._let_go(partitions)
        deadline = runtime.monotonic() + self._patience_s
        for lane in lanes:
            while not lane.join(_POLL_S) and self._may_wait(deadline):
                pass
            if not lane.ended:
                _log.warning("revoked %s while its handler runs", lane.place)
        self._store_all(lanes)
        if not self._closing:
            self._log_assignment()

    def _may_wait(self, deadline: float) -> bool:
        """Return whether there is time left, also after the wish to stop."""
        now = runtime.monotonic()
        if self._stop_by == math.inf and (self._closing or self._stop.is_set()):
            self._stop_by = now + self._stop_timeout_s
        return now < min(deadline, self._stop_by)

    def _lost(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        # somebody else may have them already: nothing is stored
        for lane in self._let_go(partitions):
            _log.warning("lost %s", lane.place)

    def _let_go(self, partitions: list[TopicPartition]) -> list[AssignedPartition]:
        places = (Place(one.topic, one.partition) for one in partitions)
        lanes = [self._lanes.pop(place) for place in places if place in self._lanes]
        for lane in lanes:
            lane.stop()
            self._former[lane.place] = lane
        if not self._closing:  # a resume waits for librdkafka without limit
            self._flow.forget(lanes)
        return lanes

    def _close(self) -> list[AssignedPartition]:
        self._closing = True
        # a handler of a revoked partition may use what the caller closes next
        lanes = [*self._lanes.values(), *self._former.values()]
        for lane in lanes:
            lane.stop()
        for lane in lanes:
            while not lane.join(_POLL_S) and self._may_wait(math.inf):
                with suppress(KafkaException):
                    # what it gives is not stored: it comes again
                    self._consumer.poll(0)
            if not lane.ended:
                _log.warning("the handler of %s did not return in time", lane.place)
        # what was revoked meanwhile is another member's to store
        self._store_all(self._lanes.values())
        if not left(self._consumer.close):
            _log.warning(
                "librdkafka did not finish closing within %.0f s; offsets are stored",
                LEAVE_S,
            )
        self._pool.close()
        return lanes


def _raise_failure(lanes: Iterable[AssignedPartition]) -> None:
    for lane in lanes:
        if lane.error is not None:
            raise lane.error
