"""Everything that can be known before `run`: configuration, folder, servers, topics.

Asks in the order in which `run` would meet what it finds, changes nothing, and says
with which exit code `run` would end.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from walstream.admin.check import backfill as backfill_checks
from walstream.admin.check import config_file, debezium_keys, schemas, state
from walstream.admin.check import kafka as chained_checks
from walstream.admin.check import sql as polled_checks
from walstream.admin.check.routes import partition_keys, topics_of
from walstream.admin.check.sinks import ExpectedRecords as WantedTopics
from walstream.admin.check.sinks import SinkChecks
from walstream.admin.check.state import StateFolderFacts
from walstream.config import (
    Config,
    KafkaSource,
    PackageSource,
    PostgresSource,
    Secrets,
    SqlSource,
)
from walstream.config.secret import mask_value
from walstream.errors import ConfigError, Repair, WalstreamError
from walstream.finding import Finding, Severity, warning
from walstream.lsn import WAL_PAGE_HEADER
from walstream.postgres.checks import ConfiguredSource, Inspection, inspect
from walstream.service import feature_support
from walstream.sources.handlers import handler_problems, idle_patterns
from walstream.sources.postgres.publications import read_anew
from walstream.sources.routers import Routers
from walstream.status.instance import Streaming, streaming
from walstream.status.lookup.sql import kept_of
from walstream.status.sql import (
    StoredPolls,
)

_IDLE: Final = "a handler or topic of no table changes nothing, and hides nothing"
_HANDLED: Final = "a handler without its column lets through what it should hide"
# What the start table says of a folder that cannot be read is of no use.
_OF_START_TABLE: Final = frozenset({"history", "slot-lost"})
_COMMAND: Final = re.compile(r"walstream [a-z -]+")


@dataclass(frozen=True, slots=True)
class SourceReport:
    """One source; its sinks' findings are its own."""

    name: str
    server: str  # the connection string or URL, secrets masked
    exit_code: int
    findings: list[Finding]


@dataclass(frozen=True, slots=True)
class Report:
    """Result of `check`."""

    exit_code: int  # that `run` would end with; 5: it would wait and try again
    ok: bool  # `run` would start
    sources: list[SourceReport]
    findings: list[Finding]  # of configuration and state folder: of no single source
    instance: str | None = None  # the process of a walstream that runs here now


def check(config: Config, more: Iterable[Finding] = ()) -> Report:
    """Look at everything; never raises WalstreamError.

    `more` is of the configuration, too: what a layer above found.
    """
    folder = Path(config.state)
    whole = [
        *map(_unsupported, feature_support.unsupported(config)),
        *config_file.look_at_file(config.plain_secrets_in),
        *state.look_at_folder(folder),
        *more,
        *(_risk(risk) for risk in feature_support.risks(config)),
    ]
    usable = not any(finding.code == "state-unwritable" for finding in whole)
    ours = streaming(folder)
    checker = _Checker(config, folder if usable else None, ours)
    sources = [
        checker.source(name, source)
        for name, source in config.sources.items()
        if not isinstance(source, PackageSource)
    ]
    finish = _Finish(config.secrets, config.command)
    whole = finish.all(whole)
    ended = _first_stop(whole)  # before any source begins
    code = ended or max((source.exit_code for source in sources), default=0)
    shown = [finish.source(one) for one in sources]
    return Report(code, not code, shown, whole, state.user_of(folder))


def refused(error: WalstreamError) -> Report:
    """Report a configuration that cannot be read."""
    finding = Finding.of(error, "configuration", "configuration")
    findings = _Finish(Secrets(), lambda command: command).all([finding])
    return Report(error.exit_code, ok=False, sources=[], findings=findings)


def _unsupported(error: ConfigError) -> Finding:
    return Finding.of(error, "unsupported", "configuration")


def _risk(risk: feature_support.Risk) -> Finding:
    return warning("risk", risk.key, risk.what, "shown at each start")


def _is_of_publication(finding: Finding) -> bool:
    """Return what `run` meets only after it looked at keys and topics."""
    return finding.subject.startswith("publication ")


def _stops_first(findings: list[Finding]) -> list[Finding]:
    order = list(Severity)
    return sorted(findings, key=lambda finding: order.index(finding.severity))


def _first_stop(findings: Iterable[Finding]) -> int:
    """Return the exit code of the first that stops `run`; 0: none does."""
    stops = (found for found in findings if found.severity is Severity.STOP)
    return next((found.exit_code for found in stops), 0)


@dataclass(slots=True)
class _Checker:
    """Goes through sources; what two of them share is asked once."""

    config: Config
    folder: Path | None  # None: nothing can be kept there
    ours: Streaming
    sinks: SinkChecks = field(default_factory=SinkChecks)

    def source(
        self, name: str, source: PostgresSource | SqlSource | KafkaSource
    ) -> SourceReport:
        """Look at a source of any kind."""
        if isinstance(source, SqlSource):
            shown, found = mask_value("url", source.url), self._polled(name, source)
        elif isinstance(source, KafkaSource):
            shown = source.consumer.get("bootstrap.servers", "")
            found = self._chained(name, source)
        else:
            shown, found = mask_value("dsn", source.dsn), self._streamed(name, source)
        findings = _stops_first(found)
        return SourceReport(name, shown, _first_stop(findings), findings)

    def _polled(self, name: str, source: SqlSource) -> list[Finding]:
        known, damage, kept = StateFolderFacts(), list[Finding](), StoredPolls()
        if self.folder is not None:
            known, damage = state.look_at_source(self.folder / name, "")
            kept = kept_of(source, self.folder / name)
        if kept.problem is not None and not damage:
            subject = f"state folder of source {name}"
            damage = [Finding.of(kept.problem, "state-damaged", subject)]
        routers = Routers(self.config, name)
        topics, unroutable = polled_checks.topics(routers, name, source)
        found = [
            *damage,
            *unroutable,
            *polled_checks.inspect(self.config, name, source, kept),
        ]
        for sink, config in routers.configs.items():
            wanted = WantedTopics(topics[sink], known.topics, polled=True)
            found += self.sinks.look(sink, config, wanted)
        return found

    def _chained(self, name: str, source: KafkaSource) -> list[Finding]:
        known, damage = StateFolderFacts(), list[Finding]()
        if self.folder is not None:
            known, damage = state.look_at_source(self.folder / name, "")
        folder = Path(self.config.state) / name
        found = [*damage, *chained_checks.inspect(name, source, folder)]
        routers = Routers(self.config, name)
        for sink, config in routers.configs.items():
            topics = chained_checks.topics(source, sink, known.topics)
            wanted = WantedTopics(
                topics | routers.compacted(sink),
                known.topics,
                chained=True,
                compacted=routers.compacted(sink),
                ids=source.group,
            )
            found += self.sinks.look(sink, config, wanted)
        return found

    def _streamed(self, name: str, source: PostgresSource) -> list[Finding]:
        known, damage = StateFolderFacts(), list[Finding]()
        if self.folder is not None:
            known, damage = state.look_at_source(self.folder / name, source.slot)
        inspection = inspect(self._wanted(name, source, known))
        server = [
            finding
            for finding in inspection.findings
            if not (damage and finding.code in _OF_START_TABLE)
        ]
        routers = Routers(self.config, name)
        tables = inspection.captured.values()
        keys, topics, sinks = [*partition_keys(routers, tables)], [], []
        for sink, config in routers.configs.items():
            named, unroutable = topics_of(routers, sink, tables)
            topics += unroutable
            if config.on_too_large != "stop":
                named.add(config.on_too_large)
            wanted = WantedTopics(
                named,
                known.topics,
                all_known=inspection.server is not None,
                oldest_commit=_oldest_commit(known, inspection),
                single=routers.single(sink),
                compacted=routers.compacted(sink),
                ids=source.slot,
            )
            sinks += self.sinks.look(sink, config, wanted)
        keys += [
            Finding.of(error, "handlers", f"sink {sink}", _HANDLED)
            for sink, error in handler_problems(routers, tables)
        ]
        keys += [
            warning("handler-pattern", f"sink {sink}", f"{pattern}: {what}", _IDLE)
            for sink, pattern, what in idle_patterns(routers, tables)
        ]
        keys += self._odd_keys(routers, source, inspection)
        early = [one for one in server if not _is_of_publication(one)]
        late = [one for one in server if _is_of_publication(one)]
        filled = self._backfill(source, known, inspection)
        return [*damage, *early, *filled, *keys, *topics, *late, *sinks]

    def _backfill(
        self, source: PostgresSource, known: StateFolderFacts, inspection: Inspection
    ) -> Iterator[Finding]:
        captured = inspection.captured if inspection.server is not None else {}
        left = known.backfill.tables if known.backfill is not None else ()
        # a slot that is taken over sends no rows from before it
        begins = (
            known.stored.position is None
            and known.backfill is None
            and not inspection.foreign_slot
        )
        return backfill_checks.inspect(
            self.config, source, captured, begins=begins, left=left
        )

    @staticmethod
    def _odd_keys(
        routers: Routers, source: PostgresSource, inspection: Inspection
    ) -> list[Finding]:
        captured = inspection.captured.values() if inspection.server else ()
        registries = [*schemas.inspect(routers, source, captured)]
        try:
            return [*debezium_keys.inspect(routers, source, captured), *registries]
        except WalstreamError:
            return registries  # of the server: said by who looked at it

    def _wanted(
        self, name: str, source: PostgresSource, known: StateFolderFacts
    ) -> ConfiguredSource:
        siblings = (
            other.slot
            for key, other in self.config.sources.items()
            if isinstance(other, PostgresSource) and key != name
        )
        return ConfiguredSource(
            name,
            source,
            known.stored,
            known.publications,
            name in self.ours.workers,
            read_anew=frozenset(read_anew(known.backfill, known.beside)),
            sibling_slots=frozenset(siblings),
        )


def _oldest_commit(known: StateFolderFacts, inspection: Inspection) -> float | None:
    """Return a time before which no change waits; None: nothing waits, or not known."""
    position, server = known.stored.position, inspection.server
    if position is None or server is None:
        return None
    waits = position.resume + WAL_PAGE_HEADER < server.flush_lsn
    return known.current_at if waits else None


@dataclass(frozen=True, slots=True)
class _Finish:
    """Makes findings what is shown: commands complete, no secret anywhere."""

    secrets: Secrets
    command: Callable[[str], str]

    def source(self, report: SourceReport) -> SourceReport:
        return replace(report, findings=self.all(report.findings))

    def all(self, findings: Iterable[Finding]) -> list[Finding]:
        return [self._one(finding) for finding in findings]

    def _one(self, finding: Finding) -> Finding:
        scrub = self.secrets.scrub
        repair = finding.repair
        then = repair.then
        if _COMMAND.fullmatch(then):
            then = self.command(then)
        lines = repair.command.splitlines()
        return replace(
            finding,
            subject=scrub(finding.subject),
            what=scrub(finding.what),
            why=scrub(finding.why),
            repair=Repair(
                sql=scrub(repair.sql),
                command=scrub("\n".join(map(self.command, lines))),
                then=scrub(then),
            ),
        )
