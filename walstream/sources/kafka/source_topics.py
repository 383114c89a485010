"""The topics that are read: what they are, and which of them the group has begun."""

import contextlib
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final, Protocol

import structlog

from walstream.config import KafkaSource
from walstream.errors import HistoryError, Restart, Transient, WalstreamError
from walstream.kafka.advertised_listeners import BrokersElsewhere
from walstream.kafka.group import offset_repair
from walstream.kafka.topic_metadata import Described
from walstream.pipeline.ports import StateStore
from walstream.pipeline.state_document import StateDocument, StoredDocuments
from walstream.sources.kafka.offset_metadata import OffsetMetadata
from walstream.telemetry import runtime
from walstream.telemetry.fields import TOPIC

_WATCH_EVERY_S: Final = 10.0
_WATCH_TIMEOUT_S: Final = 3.0  # a process that ends waits for the answer
_log = structlog.get_logger()


class Describing(Protocol):
    """Client that asks the brokers."""

    def look(
        self, names: Iterable[str], timeout_s: float | None = None
    ) -> dict[str, Described]:
        """Return descriptions of those topics that exist."""


@dataclass(frozen=True, slots=True)
class BegunTopics:
    """Topics of which a group has offsets."""

    group: str
    topics: Mapping[str, str]  # their identities, by name


BEGUN: Final = StateDocument("group", BegunTopics)


def begun_by(source: KafkaSource, stored: StoredDocuments) -> dict[str, str]:
    """Return the topics of which the source's group has had offsets."""
    kept = BEGUN.read(stored)
    return dict(kept.topics) if kept and kept.group == source.group else {}


def offsets_gone(source: KafkaSource, topic: str, what: str) -> HistoryError:
    """Make the error of a topic whose offsets the group has no longer."""
    return HistoryError(
        f"group {source.group!r} stored offsets of topic {topic!r}, which are "
        f"gone: {what}",
        hint="Kafka keeps offsets of a group without members for "
        "offsets.retention.minutes. Tell the readers; then let the group "
        "start with the oldest existing record",
        repair=offset_repair(source.consumer, source.group, topic, "--to-earliest"),
    )


class ReadTopics:
    """Those of one membership; what the group began is kept in the state folder."""

    def __init__(
        self, source: KafkaSource, positions: StateStore, describer: Describing
    ) -> None:
        self.source = source
        self._positions = positions
        self._describer = describer
        self._thread = runtime.thread_pool(1, thread_name_prefix="upstream")
        self._asked: Future[dict[str, Described]] | None = None
        self._next_watch = runtime.monotonic() + _WATCH_EVERY_S
        self._found: dict[str, Described] = {}
        self._begun = begun_by(source, positions)

    @property
    def found(self) -> Mapping[str, Described]:
        return self._found

    def look(self) -> None:
        """See which are there; the others are waited for."""
        self._found = self._describer.look(self.source.topics)
        for name in sorted(set(self.source.topics) - self._found.keys()):
            _log.warning("upstream topic is missing: waiting", **{TOPIC: name})

    def look_again(self, names: Collection[str]) -> None:
        """Look at all topics again; raise if these are missing, or any has changed."""
        found = self._describer.look(self.source.topics)
        self._compare(found)
        if missing := set(names) - found.keys():
            listed = ", ".join(sorted(missing))
            raise Transient(f"upstream topics {listed} are missing")
        self._found |= found

    def watch(self) -> None:
        """See now and then, beside the stream, whether they are what they were."""
        asked = self._asked
        if asked is not None and asked.done():
            self._asked = None
            found: dict[str, Described] = {}
            try:
                found = asked.result()
            except BrokersElsewhere:
                raise
            except WalstreamError:  # who reads hears of it too
                pass
            self._compare(found)
        if self._asked is None and runtime.monotonic() >= self._next_watch:
            self._next_watch = runtime.monotonic() + _WATCH_EVERY_S
            names = list(self._found)
            if names:
                self._asked = self._thread.submit(
                    self._describer.look, names, _WATCH_TIMEOUT_S
                )

    def _compare(self, found: Mapping[str, Described]) -> None:
        for name in self._found.keys() & found.keys():
            before, now = self._found[name], found[name]
            if now.identity != before.identity:
                # the group's offsets are of the old one: beginning anew tells
                raise Restart(f"topic {name!r} was deleted and created again")
            if now.partitions != before.partitions:
                raise Restart(f"topic {name!r} has another number of partitions now")

    def begins(self, topic: str) -> str:
        """Note that the group knows no offset of a topic: the note of its first ones.

        Raises where this group stored some before: what came since would be skipped,
        or what was deleted since would not be missed.
        """
        found = self._describer.look([topic]).get(topic)
        if found is None:
            raise Transient(f"upstream topic {topic!r} is missing")
        before = self._begun.get(topic)
        if before is None:
            # all is copied, whatever an earlier group of the name had copied
            replay = runtime.token_hex(8)
            return OffsetMetadata(found.identity, replay=replay).written()
        what = (
            "Kafka deleted them"
            if before == found.identity
            else "the topic was deleted and created again"
        )
        raise offsets_gone(self.source, topic, what)

    def note_begun(self, topics: Collection[str]) -> None:
        """Keep that the group has offsets of these; a full disk stops no record."""
        begun = {
            name: self._found[name].identity for name in topics if name in self._found
        }
        if begun.items() <= self._begun.items():
            return
        kept = BegunTopics(self.source.group, {**self._begun, **begun})
        with contextlib.suppress(WalstreamError):
            self._positions.write(BEGUN.entry(kept))
            self._begun |= begun

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)
