"""Asks a server all questions, and turns what would stop `run` into findings."""

from walstream.errors import WalstreamError
from walstream.finding import Finding
from walstream.postgres import catalog
from walstream.postgres import server as servers
from walstream.postgres import slot as slots
from walstream.postgres.capture import Capture
from walstream.postgres.checks.wanted import Inspection, Wanted
from walstream.postgres.connection import session
from walstream.postgres.start import decide


def inspect(wanted: Wanted) -> Inspection:
    """Look at the server; never raises WalstreamError: it becomes a finding."""
    source = wanted.source
    findings: list[Finding] = []
    captured: dict[str, catalog.TableFacts] = {}
    server = None
    code = "connection"
    try:
        with session(source.dsn) as connection:
            code = "server"
            server = servers.look(connection)
            resuming = wanted.stored.position is not None
            servers.check(server, source.encoding, resuming=resuming)
            facts = catalog.tables(connection)
            capture = Capture(
                source.dsn, source.publication, source.tables, keep=lambda _: None
            )
            captured = capture.captured(connection, facts)
            code = "slot"
            slot = slots.find(connection, source.slot)
            decide(wanted.name, wanted.stored, slot, server, adopt=wanted.adopt_slot)
    except WalstreamError as error:
        findings.append(Finding.of(error, code, "server"))
    return Inspection(findings, captured, server)
