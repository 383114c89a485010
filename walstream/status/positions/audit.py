"""Audits sources: state folder, slot, server, and the tail of each partition.

Only looks, whether an instance runs or not. What was stored of eras is read before the
topics, and the position after them: what streams meanwhile does not look like a gap.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from walstream.config import Config, KafkaSinkConfig, PostgresSource
from walstream.config.tls import confined
from walstream.errors import ConfigError, HistoryError, Transient, WalstreamError
from walstream.finding import Finding
from walstream.kafka import delivery_audit
from walstream.kafka.delivery_audit import (
    AuditedSink,
    StoredTopics,
    TopicSight,
)
from walstream.kafka.delivery_era import ERAS, DeliveryEra
from walstream.kafka.delivery_verdict import Agreement, StreamPlace, worst
from walstream.kafka.replay_mark import REPLAY, REPLAYS, ReplayMark, joined
from walstream.kafka.stored_topic import TOPICS, StoredTopic, of_sink
from walstream.kafka.transaction_position import TransactionPosition
from walstream.lsn import NEVER, Lsn
from walstream.postgres import catalog
from walstream.postgres import server as servers
from walstream.postgres.connection import session
from walstream.postgres.selection import selection_of
from walstream.sources.delivered_topics import transactional_ids
from walstream.sources.delivery_rules import DeliveryRules
from walstream.sources.epoch import epoch_of
from walstream.sources.postgres.detached.detached_sink import (
    AWAY,
    DETACHED,
    DROPPED,
    DetachedSink,
    folder_of,
)
from walstream.sources.postgres.detached.feed_record import FED, gaps_of
from walstream.sources.routers import Routers
from walstream.state.store import LmdbStore
from walstream.status.instance import Streaming, streaming
from walstream.status.positions import audit_sum, audit_transactions
from walstream.status.positions.audit_model import Audit, SinkAudit, SourceAudit
from walstream.status.positions.audit_transactions import StartPlace
from walstream.status.positions.model import StartOutcome
from walstream.status.positions.postgres import SourceSight
from walstream.status.positions.verdict import finding, verdict
from walstream.telemetry import runtime

_CLEAN: Final = "the last run ended cleanly at the position, so nothing is looked for"
_GIVEN_UP: Final = "the sink was dropped, and no longer gets anything"
_ASIDE: Final = "its records are no changes of tables, and have no names"
_BAD: Final = frozenset({Agreement.FOREIGN, Agreement.MISSING})


def audit(config: Config, source: str = "") -> Audit:
    """Audit one source, or all of PostgreSQL. Raises ConfigError for any other."""
    if source and not isinstance(config.source(source), PostgresSource):
        raise ConfigError(
            f"source {source!r} has no slot to compare with",
            hint=f"walstream positions show {source} shows where it is",
        )
    ours = streaming(Path(config.state))
    audited = [
        _SourceAuditor(config, name, one, ours).audit()
        for name, one in config.postgres_sources.items()
        if source in {"", name}
    ]
    return Audit(
        datetime.fromtimestamp(runtime.time(), UTC),
        max((_exit_code(one) for one in audited), default=0),
        worst(one.verdict for one in audited),
        audited,
    )


def _exit_code(found: SourceAudit) -> int:
    """Return 3 where changes are missing or foreign, or what kept from looking."""
    codes = [one.exit_code for one in found.problems]
    if found.start.outcome is StartOutcome.STOP and found.start.problem is not None:
        codes.append(found.start.problem.exit_code)
    if found.verdict in _BAD:
        return HistoryError.exit_code
    return max(codes, default=0)


@dataclass(frozen=True, slots=True)
class _Stored:
    """State of the sinks as stored, before their topics are looked at."""

    topics: Mapping[str, StoredTopic] = field(default_factory=dict)
    eras: Mapping[str, DeliveryEra] = field(default_factory=dict)
    away: Mapping[str, DetachedSink] = field(default_factory=dict)
    origin: str = ""
    epoch: int = 0
    replay: ReplayMark | None = None
    replays: Mapping[str, ReplayMark] = field(default_factory=dict)  # by sink
    gaps: Mapping[str, str] = field(default_factory=dict)  # by sink, in words

    @classmethod
    def read(cls, folder: Path) -> "_Stored":
        """Read a source's folder; what is wrong with it is said elsewhere."""
        try:
            with LmdbStore.open_read_only(folder) as positions:
                if positions is None:
                    return cls()
                position = positions.position()
                return cls(
                    TOPICS.read_all(positions),
                    ERAS.read_all(positions),
                    DETACHED.read_all(positions),
                    f"{position.system_identifier}/{position.database}"
                    if position
                    else "",
                    epoch_of(positions),
                    REPLAY.read(positions),
                    REPLAYS.read_all(positions),
                    gaps_of(FED.read_all(positions)),
                )
        except WalstreamError:
            return cls()


class _SourceAuditor:
    """Goes through one source."""

    def __init__(
        self, config: Config, name: str, source: PostgresSource, ours: Streaming
    ) -> None:
        self._config = config
        self._name = name
        self._source = source
        self._folder = Path(config.state) / name
        self._sight = SourceSight(config, name, source, ours)
        self._rules = DeliveryRules(config, name)
        self._routers = Routers(config, name)
        self._problems: list[Finding] = []

    def audit(self) -> SourceAudit:
        stored = _Stored.read(self._folder)
        own = {sink: self._own(sink, stored) for sink in self._routers.configs}
        origin, tables = self._ask_server(stored)
        header = f"{origin}/{stored.epoch}" if origin else ""
        sights = {
            sink: self._look(sink, header, own[sink], tables)
            for sink in self._routers.configs
        }
        told = {
            sink: self._position_in_kafka(sink, header)
            for sink, config in self._routers.configs.items()
            if config.is_transactional and sights[sink] is not None
        }
        self._sight.look_at_server()
        missing = audit_sum.gap(self._sight.seen)
        sinks = [
            audit_sum.with_gap(
                self._judged(sink, header, stored, found, told),
                stored.gaps.get(sink, ""),
            )
            for sink, found in sights.items()
        ]
        verdicts = [one.verdict for one in sinks]
        if missing is not None:
            verdicts.append(Agreement.MISSING)
        seen = self._sight
        return SourceAudit(
            self._name,
            worst(verdicts),
            verdict(seen.seen, self._config.secrets.scrub),
            seen.state,
            seen.slot,
            seen.server,
            missing,
            sinks,
            self._problems,
        )

    def _own(self, sink: str, stored: _Stored) -> StoredTopics:
        """Return what is stored of one sink, by who sends to it."""
        topics = of_sink(stored.topics, sink)
        eras = stored.eras
        if self._is_away(sink, stored):
            eras = _Stored.read(folder_of(self._folder, sink)).eras
        prefix = f"{sink}/"
        return StoredTopics(
            topics,
            {
                name.removeprefix(prefix): era
                for name, era in eras.items()
                if name.startswith(prefix)
            },
        )

    @staticmethod
    def _is_away(sink: str, stored: _Stored) -> bool:
        note = stored.away.get(sink)
        return note is not None and note.phase == AWAY

    def _ask_server(self, stored: _Stored) -> tuple[str, list[tuple[str, str]]]:
        """Return where records come from, and the tables that may be captured.

        A server that does not answer is noted when it is looked at again.
        """
        wanted = selection_of(self._source)
        try:
            with session(self._source.dsn) as connection:
                origin = stored.origin or servers.look(connection).origin
                facts = catalog.tables(connection)
        except WalstreamError:
            return stored.origin, []
        return origin, [
            (one.schema, one.name)
            for one in facts.values()
            if wanted.wants(one.full_name)
        ]

    def _look(
        self,
        sink: str,
        header: str,
        own: StoredTopics,
        tables: Iterable[tuple[str, str]],
    ) -> list[TopicSight] | None:
        """Look at the topics of a sink; None: they could not be asked for."""
        config = self._config.sinks[sink]
        assert isinstance(config, KafkaSinkConfig)  # noqa: S101 - `configs` has no other
        router = self._routers[sink]
        routed = {router.topic(*table) for table in tables} - {None}
        names = {*own.topics, *(name for name in routed if name)}
        topics = self._rules.topics(sink, header.encode())
        shared = {name for name in names if not self._rules.is_alone(sink, name)}
        asked = AuditedSink(
            topics,
            own,
            names,
            self._rules.why_again(sink),
            self._unnamed(sink, names, topics.counts),
            shared,
            confined(sink, config),
        )
        try:
            return delivery_audit.look(asked)
        except WalstreamError as error:
            scrub = self._config.secrets.scrub
            self._problems.append(finding(error, "topics", f"sink {sink}", scrub))
            return None

    def _position_in_kafka(self, sink: str, header: str) -> TransactionPosition | None:
        """Return how far a sink's transactions are; None: they tell nothing."""
        # it is told as that, by the worker of a detached sink, too
        name, _detached = transactional_ids(self._source.slot, sink, header.encode())
        config = self._routers.configs[sink]
        try:
            return audit_transactions.position_of(config, self._name, name)
        except WalstreamError as error:
            scrub = self._config.secrets.scrub
            self._problems.append(finding(error, "topics", f"sink {sink}", scrub))
            return None

    def _replay(self, sink: str, stored: _Stored) -> ReplayMark | None:
        """Return the mark that a position in Kafka has to have."""
        own = stored
        if self._is_away(sink, stored):
            own = _Stored.read(folder_of(self._folder, sink))
        return joined(own.replay or stored.replay, own.replays.get(sink))

    def _unnamed(
        self, sink: str, names: Iterable[str], counts: Callable[[str], bool]
    ) -> dict[str, str]:
        """Return which topics have records without names, and why."""
        if self._routers.configs[sink].is_transactional:
            return dict.fromkeys(names, audit_transactions.TOLD)
        if why := self._rules.why_unnamed(sink):
            return dict.fromkeys(names, why)
        return {
            name: _ASIDE
            for name in names
            if not counts(name) and self._rules.is_alone(sink, name)
        }

    def _judged(
        self,
        sink: str,
        header: str,
        stored: _Stored,
        sights: Iterable[TopicSight] | None,
        told: Mapping[str, TransactionPosition | None],
    ) -> SinkAudit:
        """Compare what was seen of a sink with where it is now."""
        resume, repeats = self._place(sink, stored)
        if sights is None or resume is None:
            text = "its topics could not be read, or no position is known"
            return SinkAudit(sink, Agreement.UNKNOWN, text, resume, None, [])
        server = self._sight.seen.server
        flush = server.flush_lsn if server and server.flush_lsn else NEVER
        place = StreamPlace(resume, flush, header)
        why = "" if repeats else _CLEAN
        topics = [one.judged(place, why) for one in sights]
        if sink in told:
            start = StartPlace(resume, flush, header, self._replay(sink, stored))
            return audit_transactions.judged(sink, told[sink], start, topics)
        note = stored.away.get(sink)
        why = _GIVEN_UP if note and note.phase == DROPPED else ""
        found = audit_sum.of_sink(
            sink, resume, topics, why or self._rules.why_unnamed(sink)
        )
        if found.verdict is Agreement.UNKNOWN and any(one.partitions for one in topics):
            error = Transient(
                "some partitions could not be read in time",
                hint="audit again when the brokers have less to do",
            )
            self._problems.append(finding(error, "topics", f"sink {sink}", str))
        return found

    def _place(self, sink: str, stored: _Stored) -> tuple[Lsn | None, bool]:
        """Return from where a sink is sent to after a crash now, and whether again."""
        if self._is_away(sink, stored):
            return _resume_in(folder_of(self._folder, sink)), True
        seen = self._sight.seen
        if seen.stored.position is not None:
            return seen.stored.position.resume, self._sight.repeats
        if seen.slot is not None and seen.slot.confirmed_flush_lsn:
            return seen.slot.confirmed_flush_lsn, True
        return (seen.server.flush_lsn or None) if seen.server else None, True


def _resume_in(folder: Path) -> Lsn | None:
    try:
        with LmdbStore.open_read_only(folder) as positions:
            position = positions.position() if positions else None
    except WalstreamError:
        return None
    return position.resume if position else None
