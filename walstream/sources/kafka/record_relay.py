"""Records of the source's topics on their way to the sinks, one after the other."""

from collections.abc import Sequence

from walstream.config.relay_rules import NO_TOPIC, STOP
from walstream.errors import ConfigError, Restart, WalstreamError
from walstream.kafka.group_consumer import GroupConsumer
from walstream.kafka.topic_reader import TopicRecord
from walstream.records.router import IllegalTopic
from walstream.sources.kafka.assignment import Assignment, place_of
from walstream.sources.kafka.envelope import READERS, Named, Table, noted, say
from walstream.sources.kafka.metrics import RelayMetrics
from walstream.sources.kafka.offset_ledger import Portion
from walstream.sources.kafka.offset_metadata import OffsetMetadata
from walstream.sources.kafka.poison import ILLEGAL, TOMBSTONE, Poison, Unpassable
from walstream.sources.kafka.relay_sink import RelaySink, RelayTarget
from walstream.sources.kafka.source_topics import ReadTopics


class RecordRelay:
    """Sends each record to every sink before the next one goes to any."""

    def __init__(  # noqa: PLR0913 - what a membership has, once
        self,
        topics: ReadTopics,
        form: str,
        outlets: Sequence[RelaySink],
        figures: RelayMetrics,
        *,
        holdings: Assignment,
        upstream: GroupConsumer,
    ) -> None:
        """`form` is the format of what comes in."""
        self._topics = topics
        self._on_poison = topics.source.on_poison
        self._read = READERS[form]
        self._outlets = outlets
        self._figures = figures
        self._holdings = holdings
        self._upstream = upstream
        self._poison = Poison(topics.source, outlets[0], figures)
        self._last_tables: dict[str, Table] = {}  # by upstream topic

    def pass_on(self) -> None:
        """Send what was read, until a sink has no room, or a topic has to be found."""
        holdings = self._holdings
        pending, outlets = holdings.pending, self._outlets
        while pending:
            if not self._pass(pending[0]):
                return
            pending.popleft()
            for outlet in outlets:
                if not outlet.has_room:
                    return
        holdings.close_portions()

    def _pass(self, record: TopicRecord) -> bool:
        """Send one record to every sink; False: where to is not known yet."""
        place = place_of(record)
        offsets = self._holdings.offsets.get(place)
        if offsets is None:  # it was taken meanwhile
            return True
        portion = self._holdings.portion(place, record.offset)
        note = offsets.note
        try:
            named = self._named(record, note)
            aims = self._aim(record, named.table)
        except Unpassable as error:
            if not self._meet(record, str(error.args[0]), portion):
                return False
            self._figures.count(None)
            offsets.sent(portion, record.offset, note)
            return True
        if aims is None:
            return False
        note = noted(note, record.headers, named.table)
        for outlet, aim in zip(self._outlets, aims, strict=True):
            if outlet.verbose:
                say(outlet.name, record, named)
            outlet.put(aim, record, note.source, portion)
        self._figures.count(named.table)
        offsets.sent(portion, record.offset, note)
        return True

    def _named(self, record: TopicRecord, note: OffsetMetadata) -> Named:
        """Return what a record is of; raise Unpassable where nobody knows."""
        if record.value is None:
            table = note.table or self._last_tables.get(record.topic)
            if table is None:
                raise Unpassable(TOMBSTONE)
            return Named(table)
        try:
            named = self._read(record.value)
        except WalstreamError as error:
            raise Unpassable(str(error.args[0])) from None
        self._last_tables[record.topic] = named.table
        return named

    def _meet(self, record: TopicRecord, cause: str, portion: Portion) -> bool:
        """Apply the policy for a record that is not an op; False: not yet."""
        if self._on_poison == STOP:
            # an operator may pass over it: all before it has to be there by then
            where = [place_of(record)]
            if self._holdings.undelivered(where):
                return False
            self._holdings.tell_again(where)
            self._upstream.store(self._holdings.due(where), wait=True)
        return self._poison.meet(record, cause, portion)

    def _aim(self, record: TopicRecord, table: Table) -> list[RelayTarget] | None:
        """Return where each sink sends it, before any does.

        Raises Unpassable for a table that no topic can be named after.
        """
        partitions = self._topics.found[record.topic].partitions
        if record.partition >= partitions:
            raise Restart(f"topic {record.topic!r} has more partitions now")
        try:
            found = [outlet.aim(table, partitions) for outlet in self._outlets]
        except IllegalTopic:
            raise Unpassable(ILLEGAL) from None
        first = found[0]
        if first is not None and first.topic is not None:
            self._keep_apart(first.topic.name, table)
        aims = [aim for aim in found if aim is not None]
        return aims if len(aims) == len(self._outlets) else None

    def _keep_apart(self, topic: str, table: Table) -> None:
        """Refuse a topic of ops that is where malformed records go."""
        if topic == self._on_poison and topic not in NO_TOPIC:
            full_name = ".".join(filter(None, table))
            raise ConfigError(
                f"`on_poison` names topic {topic!r}, to which sink"
                f" {self._outlets[0].name!r} sends the ops of table {full_name!r}",
                hint="name another topic for malformed records",
            )
