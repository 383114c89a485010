"""One membership of the group: read, pass on, store; until a stop, or an error.

While a sink has no room nothing is read, and the membership is kept. What is left
undone at an end comes again: offsets are stored only of what every sink has delivered.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import structlog

from walstream.errors import Restart, WalstreamError
from walstream.kafka.group import StoredOffset, offset_repair
from walstream.kafka.group_consumer import GroupConsumer
from walstream.kafka.offsets import Partition
from walstream.pipeline.shutdown import Stop
from walstream.sources.kafka.assignment import Assignment, wait_for
from walstream.sources.kafka.metrics import RelayMetrics
from walstream.sources.kafka.partition_producers import UpstreamPartition
from walstream.sources.kafka.record_relay import RecordRelay
from walstream.sources.kafka.relay_sink import RelaySink
from walstream.sources.kafka.source_topics import ReadTopics
from walstream.telemetry import runtime

_POLL_S: Final = 0.05
_BUSY_S: Final = 0.005
_LIMIT: Final = 2000  # records at a time
_STORE_EVERY_S: Final = 0.2
_LOOK_EVERY_S: Final = 1.0
_AWAY_LOOK_S: Final = 5.0
_PATIENCE_S: Final = 1.0  # without room, before fetching is paused
_CLOSE_WAIT_S: Final = 3.0  # of all sinks together
_REVOKE_SHARE: Final = 0.5  # of max.poll.interval.ms, for what is under way
_MAX_POLL_MS: Final = 300_000  # librdkafka's default
_log = structlog.get_logger()


class Relay:
    """A member of the group, and the outlets that it feeds."""

    def __init__(
        self,
        topics: ReadTopics,
        form: str,
        outlets: Sequence[RelaySink],
        figures: RelayMetrics,
        stop: Stop,
    ) -> None:
        """`form` is the format of what comes in."""
        self._source = source = topics.source
        self._topics = topics
        self._outlets = outlets
        self._figures = figures
        self._stop = stop
        self._holdings = Assignment(
            lambda topic: offset_repair(
                source.consumer, source.group, topic, "--to-earliest"
            )
        )
        self._upstream = GroupConsumer(
            source.consumer, source.group, source.topics, self
        )
        self._records = RecordRelay(
            topics,
            form,
            outlets,
            figures,
            holdings=self._holdings,
            upstream=self._upstream,
        )
        limit_ms = source.consumer.get("max.poll.interval.ms", _MAX_POLL_MS)
        self._patience_s = int(limit_ms) / 1000 * _REVOKE_SHARE
        self._full_since = 0.0
        self._next_store = self._next_look = self._next_away_look = 0.0
        self._closing = False

    def run(self) -> bool:
        """Pass on until a stop; False: its deadline cut the drain short."""
        try:
            self._topics.look()
            self._keep_apart()
            self._upstream.subscribe()
            _log.info("streaming", topics=len(self._source.topics))
            self._figures.streaming = self._figures.has_streamed = True
            while not self._stop.requested:
                self._turn()
            return self._drain()
        finally:
            self._figures.streaming = False
            self._leave()

    def _turn(self) -> None:
        room = self._serve()
        holdings = self._holdings
        if room and holdings.pending:
            self._records.pass_on()
        if room and not holdings.pending:
            self._full_since = 0.0
            self._upstream.pause(paused=False)
            self._hear(_POLL_S)
        else:
            self._wait()
        self._do_what_is_due()

    def _hear(self, wait_s: float) -> None:
        """Take the records that have arrived; the group's callbacks run here."""
        records = self._upstream.poll(wait_s, _LIMIT)
        self._figures.read += len(records)
        self._holdings.add(records)

    def _wait(self) -> None:
        """Let the sinks go on. Without a poll now and then the group would drop us."""
        now = runtime.monotonic()
        self._full_since = self._full_since or now
        if now - self._full_since < _PATIENCE_S:
            self._stop.event.wait(_BUSY_S)
            return
        # librdkafka drops what it fetched of a partition that is paused
        self._upstream.pause(paused=True)
        self._hear(_POLL_S)

    def _serve(self) -> bool:
        """Serve delivery reports; return whether every sink has room."""
        # a list: each is served, whatever another says
        return all([outlet.serve() for outlet in self._outlets])  # noqa: C419

    def _do_what_is_due(self) -> None:
        now = runtime.monotonic()
        self._store_now_and_then()
        if now >= self._next_look:
            self._next_look = now + _LOOK_EVERY_S
            self._look()
        if self._upstream.away and now >= self._next_away_look:
            self._next_away_look = now + _AWAY_LOOK_S
            self._upstream.look()

    def _store_now_and_then(self) -> None:
        now = runtime.monotonic()
        if now >= self._next_store:
            self._next_store = now + _STORE_EVERY_S
            self._store()

    def _store(self) -> None:
        holdings, storing = self._holdings, self._upstream.storing
        holdings.tell_again(storing.take_unstored())
        # while stopping, what was read is dropped: it was not passed over
        if not (holdings.pending or self._stop.requested):
            holdings.pass_over(self._upstream.positions(holdings.offsets))
        self._upstream.store(holdings.due(), wait=False)
        self._figures.delivered += holdings.take_delivered()
        self._topics.note_begun(storing.take_begun())

    def _look(self) -> None:
        """Take in how all is, for those who ask."""
        figures = self._figures
        figures.see_away(self._upstream.away)
        ends = self._upstream.ends(self._holdings.offsets)
        figures.lag = self._holdings.lag(ends)
        figures.unstored = self._upstream.storing.why
        self._see_sinks()
        figures.write()
        if not figures.away:
            self._topics.watch()
        for outlet in self._outlets:
            outlet.look_at_topics()

    def _see_sinks(self) -> None:
        reports = {outlet.name: outlet.report() for outlet in self._outlets}
        self._figures.see_sinks(reports)

    def _keep_apart(self) -> None:
        """Let no sink write to what is read."""
        identities = [one.identity for one in self._topics.found.values()]
        for outlet in self._outlets:
            outlet.keep_from(identities)

    def begins(self, topic: str) -> str:
        """Note that the group knows no offset of a topic."""
        return self._topics.begins(topic)

    def assigned(self, stored: Mapping[Partition, StoredOffset]) -> None:
        """Go on with partitions where the group is."""
        if self._closing:
            return
        # another member may have got what was added: all topics are looked at
        self._topics.look_again({place.topic for place in stored})
        self._keep_apart()
        replayed = self._holdings.take(stored, self._topics.found)
        # who comes next would begin one more, and copy all of this one again
        self._upstream.store(self._holdings.due(replayed), wait=True)
        assigned = [self._assigned(place, each) for place, each in stored.items()]
        for outlet in self._outlets:
            outlet.take(assigned)

    def _assigned(self, place: Partition, stored: StoredOffset) -> UpstreamPartition:
        """Return where the group is, and what is noted of a replay."""
        note = self._holdings.offsets[place].note
        return UpstreamPartition(place, note.topic, stored.offset or 0, note.replay)

    def revoked(self, places: Collection[Partition]) -> None:
        """Deliver and store what was sent of partitions, then let them go."""
        if self._closing:
            return
        deadline = runtime.monotonic() + self._patience_s
        self._holdings.drop_pending(places)
        try:
            done = wait_for(
                lambda: not self._holdings.undelivered(places),
                self._serve,
                lambda: runtime.monotonic() > deadline or self._stop.expired,
            )
            self._upstream.store(self._holdings.due(places), wait=True)
        except WalstreamError:
            self._give_up()
            raise
        finally:
            self._figures.delivered += self._holdings.take_delivered()
            self._holdings.leave(places)
        if not done:
            # else it would come amid what the next member sends of the same
            self._give_up()
            raise Restart("partitions were revoked before everything was delivered")
        for outlet in self._outlets:
            outlet.leave(places)

    def lost(self, places: Collection[Partition]) -> None:
        """Send nothing more: another member may already send the same."""
        if self._closing:
            return
        self._holdings.leave(places)
        self._give_up()
        raise Restart("the group may have assigned partitions to another member")

    def _give_up(self) -> None:
        for outlet in self._outlets:
            outlet.give_up()

    def _drain(self) -> bool:
        """Let what was sent be delivered; what was only read comes again."""
        holdings = self._holdings
        holdings.drop_pending(list(holdings.offsets))
        self._upstream.pause(paused=True)

        def serve() -> None:
            self._serve()
            self._upstream.poll(0, 1)
            self._store_now_and_then()

        return wait_for(
            lambda: not holdings.undelivered(), serve, lambda: self._stop.expired
        )

    def _leave(self) -> None:
        """Store what was delivered, and leave the group."""
        holdings = self._holdings
        # who kills us meanwhile finds what was delivered so far
        self._store_last(wait=False)
        deadline = runtime.monotonic() + _CLOSE_WAIT_S
        for outlet in self._outlets:
            outlet.close(max(0.0, deadline - runtime.monotonic()))
        holdings.tell_again(list(holdings.offsets))
        self._store_last(wait=True)
        self._figures.delivered += holdings.take_delivered()
        self._see_sinks()
        self._closing = True
        self._upstream.close()
        self._topics.close()

    def _store_last(self, *, wait: bool) -> None:
        """Store what was delivered, as far as the brokers answer."""
        due = self._holdings.due()
        if self._upstream.away:
            return
        try:
            self._upstream.store(due, wait=wait)
        except WalstreamError as error:
            _log.warning(
                "offsets are not stored: records will come again", error=str(error)
            )
        self._topics.note_begun(self._upstream.storing.take_begun())
