"""Asks a server all questions, and turns what would stop `run` into findings."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

import psycopg

from walstream.errors import PermissionLacking, Transient, WalstreamError
from walstream.finding import Finding, Severity, note
from walstream.postgres import catalog, publication
from walstream.postgres import server as servers
from walstream.postgres.capture import Capture
from walstream.postgres.checks import (
    clock,
    key_type,
    open_transactions,
    publications,
    retained_wal,
    settings,
    standby,
    start,
    tables,
    toast,
)
from walstream.postgres.checks.context import (
    ConfiguredSource,
    Inspection,
    ServerContext,
)
from walstream.postgres.connection import Connection, session
from walstream.postgres.missing_rows import Mending
from walstream.postgres.selection import selection_of
from walstream.postgres.server import Server

_WAITS: Final = "run would wait for it; changes stay in PostgreSQL's WAL meanwhile"
# In the order in which `run` meets what they look at.
_PARTS: Final[tuple[Callable[[ServerContext], Iterator[Finding]], ...]] = (
    start.look,
    settings.look,
    standby.look,
    clock.look,
    retained_wal.look,
    open_transactions.look,
    publications.look,
    tables.look,
    key_type.look,
    toast.look,
)


def inspect(wanted: ConfiguredSource) -> Inspection:
    """Look at the server; never raises WalstreamError: it becomes a finding."""
    looking = _Looking(wanted)
    try:
        with session(wanted.source.dsn) as connection:
            looking.at(connection)
    except WalstreamError as error:
        looking.findings.append(_unreachable(error))
    order = list(Severity)
    findings = sorted(
        (
            replace(finding, repair=finding.repair.of_source(wanted.name))
            for finding in looking.findings
        ),
        key=lambda finding: order.index(finding.severity),
    )
    return Inspection(findings, looking.captured, looking.server, looking.foreign_slot)


def _unreachable(error: WalstreamError) -> Finding:
    code = "login" if isinstance(error, PermissionLacking) else "connection"
    why = _WAITS if isinstance(error, Transient) else ""
    return Finding.of(error, code, "server", why)


class _Looking:
    """One inspection, as far as it has come."""

    def __init__(self, wanted: ConfiguredSource) -> None:
        self.wanted = wanted
        self.findings: list[Finding] = []
        self.captured: dict[str, catalog.TableFacts] = {}
        self.server: Server | None = None
        self.foreign_slot = False

    def at(self, connection: Connection) -> None:
        try:
            self.server = server = servers.look(connection)
        except WalstreamError as error:
            self.findings.append(Finding.of(error, "server-version", "server"))
            return
        resuming = self.wanted.stored.position is not None
        source = self.wanted.source
        for code, problem in servers.problems(
            server,
            source.encoding,
            resuming=resuming,
            allow_synchronous=source.allow_synchronous,
            generated=source.generated == "stored",
        ):
            self.findings.append(Finding.of(problem, code, "server"))
        if server.in_recovery:
            return
        seen = self._see(connection, server)
        self.captured = seen.captured
        for part in _PARTS:
            self._part(part, seen)
        self.foreign_slot = seen.foreign_slot

    def _see(self, connection: Connection, server: Server) -> ServerContext:
        source = self.wanted.source
        capture = Capture(
            source.dsn,
            source.publication,
            selection_of(source),
            keep=lambda _: None,
            mending=Mending(
                self.wanted.name, reread=source.on_publication_change == "reread"
            ),
        )
        facts = catalog.tables(connection)
        return ServerContext(
            self.wanted,
            connection,
            server,
            facts,
            capture,
            publication.find(connection, capture.names),
            capture.captured(connection, facts),
        )

    def _part(
        self, part: Callable[[ServerContext], Iterator[Finding]], seen: ServerContext
    ) -> None:
        """Look at one part; what may not be asked leaves the others whole."""
        try:
            self.findings.extend(part(seen))
        except psycopg.Error as error:
            if seen.connection.broken:
                raise
            name = part.__module__.rpartition(".")[2]
            said = error.diag.message_primary or type(error).__name__
            self.findings.append(
                note(
                    "not-asked",
                    name,
                    f"could not be checked: {said}",
                    "its findings are unknown",
                )
            )
