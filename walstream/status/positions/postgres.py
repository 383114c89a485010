"""Looks at one source from all sides: the state folder, the slot, the server, Kafka."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from walstream.config import Config, KafkaSinkConfig, KafkaSource, PostgresSource
from walstream.config.tls import confined
from walstream.errors import WalstreamError
from walstream.kafka.advertised_listeners import Whereabouts
from walstream.kafka.last_op import TopicEnd, highest, topic_ends
from walstream.kafka.producer_config import client_properties
from walstream.kafka.stored_topic import TOPICS
from walstream.pipeline.ports import PREVIOUS_POSITION
from walstream.pipeline.row_key import KEYS
from walstream.postgres import server as servers
from walstream.postgres import slot as slots
from walstream.postgres.connection import Connection, session
from walstream.postgres.server import Server
from walstream.postgres.slot_inventory import SlotFacts, find, oldest_kept
from walstream.sources.epoch import epoch_of
from walstream.sources.postgres.stored_state import (
    INTENT,
    ReplayWindow,
    may_repeat,
    stored_of,
    window,
)
from walstream.state.lock import holder
from walstream.state.store import LmdbStore
from walstream.status.instance import Streaming, streaming
from walstream.status.positions import kafka
from walstream.status.positions.model import (
    Intent,
    ServerFacts,
    Standing,
    Standings,
    StateFacts,
    TopicFacts,
)
from walstream.status.positions.sql import standing
from walstream.status.positions.verdict import (
    StartFacts,
    finding,
    remarks,
    verdict,
)
from walstream.telemetry import runtime

_ANSWER_S: Final = 5.0


def look(config: Config, source: str = "") -> Standings:
    """Look at one source, or at all. Raises ConfigError for one that is not there."""
    if source:
        config.source(source)
    ours = streaming(Path(config.state))
    wanted = {source} if source else config.sources.keys()
    return Standings(
        datetime.fromtimestamp(runtime.time(), UTC),
        [
            SourceSight(config, name, one, ours).standing()
            for name, one in config.postgres_sources.items()
            if name in wanted
        ],
        [
            standing(config, name, one)
            for name, one in config.sql_sources.items()
            if name in wanted
        ],
        [
            kafka.standing(config, name, one)
            for name, one in sorted(config.sources.items())
            if name in wanted and isinstance(one, KafkaSource)
        ],
    )


class SourceSight:
    """One source. A look that fails leaves its side None."""

    def __init__(
        self, config: Config, name: str, source: PostgresSource, ours: Streaming
    ) -> None:
        self._config = config
        self._folder = Path(config.state) / name
        self.seen = StartFacts(name, source, process=ours.workers.get(name))
        self.state: StateFacts | None = None
        self.slot: SlotFacts | None = None
        self.server: ServerFacts | None = None
        self.repeats = True  # may what comes next have been sent before?
        self._window: ReplayWindow | None = None

    def standing(self) -> Standing:
        # What streams meanwhile must not look like a gap: the topics come before the
        # server that is ahead of them, and the slot before the position, likewise.
        topics = self._look_at_topics()
        self.look_at_server()
        name = self.seen.name
        return Standing(
            source=name,
            verdict=verdict(self.seen, self._config.secrets.scrub),
            state=self.state,
            slot=self.slot,
            server=self.server,
            window=self._window,
            topics=topics,
            notes=list(remarks(name, self.state, self.server, topics.last)),
        )

    def look_at_server(self) -> None:
        """Look at slot, state folder and server, in the order of their moves."""
        seen = self.seen
        try:
            with session(seen.source.dsn) as connection:
                self.slot = self._find_slot(connection)
                seen.reader = self.slot.reader if self.slot else None
                seen.slot = slots.find(connection, seen.source.slot)
                self._look_at_state()
                seen.server = servers.look(connection)
                self.server = _server_facts(seen.server, connection)
        except WalstreamError as error:
            if self.state is None and seen.problem is None:  # not looked at yet
                self._look_at_state()
            seen.problem = seen.problem or error

    def _find_slot(self, connection: Connection) -> SlotFacts | None:
        seen = self.seen
        slot = find(connection, seen.source.slot)
        return replace(slot, sources=[seen.name]) if slot else None

    def _look_at_state(self) -> None:
        seen = self.seen
        try:
            with LmdbStore.open_read_only(self._folder) as positions:
                if positions is None:
                    self.state = StateFacts()
                    return
                self.state = _state_facts(positions, self._folder)
                seen.stored = stored_of(positions, seen.source.slot)
                self.repeats = may_repeat(positions)
                position = seen.stored.position
                if position is not None and seen.slot is not None:
                    self._window = window(positions, position, seen.slot)
        except WalstreamError as error:
            self.state = None
            seen.problem = error

    def _look_at_topics(self) -> TopicFacts:
        """Look at the ends of the topics that were written to."""
        names, origin = _kept_topics(self._folder)
        ends: list[TopicEnd] = []
        problems = []
        for sink, topics in names.items():
            config = self._config.sinks.get(sink)
            if not isinstance(config, KafkaSinkConfig):
                continue  # not configured any more
            client = client_properties(config.producer)
            try:
                Whereabouts(client, confined(sink, config)).look(_ANSWER_S)
                ends += topic_ends(client, topics, origin)
            except WalstreamError as error:
                scrub = self._config.secrets.scrub
                problems.append(finding(error, "topics", f"sink {sink}", scrub))
        return TopicFacts(highest(ends, origin), ends, problems)


def _kept_topics(folder: Path) -> tuple[dict[str, list[str]], str]:
    """Name the topics of each sink that were written to, and who wrote."""
    found: dict[str, list[str]] = {}
    try:
        with LmdbStore.open_read_only(folder) as positions:
            if positions is None:
                return {}, ""
            for name in TOPICS.keys(positions):
                sink, topic = name.split("/", 1)
                found.setdefault(sink, []).append(topic)
            position = positions.position()
            epoch = epoch_of(positions)
    except WalstreamError:
        return {}, ""  # said of the state folder itself
    if position is None:
        return found, ""
    return found, f"{position.system_identifier}/{position.database}/{epoch}"


def _state_facts(positions: LmdbStore, folder: Path) -> StateFacts:
    position = positions.position()
    previous = PREVIOUS_POSITION.read(positions)
    intent = INTENT.read(positions)
    return StateFacts(
        process=holder(folder),
        resume=position.resume if position else None,
        previous_resume=previous.resume if previous else None,
        system_identifier=position.system_identifier if position else None,
        timeline=position.timeline if position else None,
        database=position.database if position else None,
        slot=position.slot if position else None,
        epoch=epoch_of(positions),
        key_tables=len(KEYS.keys(positions)),
        topics=len(TOPICS.keys(positions)),
        intent=Intent(intent.slot, intent.consistent_point) if intent else None,
    )


def _server_facts(server: Server, connection: Connection) -> ServerFacts:
    version = connection.info.server_version
    return ServerFacts(
        version=f"{version // 10000}.{version % 10000}",
        system_identifier=server.system_identifier,
        timeline=server.timeline,
        database=server.database,
        flush_lsn=server.flush_lsn,
        kept_from=oldest_kept(connection),
    )
