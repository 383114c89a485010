"""A source's PostgreSQL as `walstream check` sees it, and its repairs as printed."""

from typing import Any

import psycopg

from tests.support.fixtures.postgres import Database
from tests.support.programs.verb import verb
from tests.support.programs.walstream import SOURCE, Walstream, toml
from walstream.config import PostgresSource
from walstream.errors import Repair
from walstream.finding import Finding, Severity
from walstream.postgres.checks import ConfiguredSource, Inspection, inspect
from walstream.postgres.publication_memory import PUBLICATIONS, StoredPublication
from walstream.postgres.start_table import StoredState
from walstream.sources.postgres.stored_state import INTENT
from walstream.state.store import LmdbStore


def look(dsn: str, stored: StoredState | None = None, **options: Any) -> Inspection:
    """Inspect a source; `options` are those of `Wanted`, else keys of the source."""
    about = {
        key: options.pop(key)
        for key in ("publications", "running", "adopt_slot", "sibling_slots")
        if key in options
    }
    source = PostgresSource(
        kind="postgres",
        dsn=dsn,
        sinks=["kafka"],
        **{"slot": "walstream_check", "backfill": "never", **options},
    )
    about = {"publications": None, "running": False, **about}
    return inspect(ConfiguredSource(SOURCE, source, stored or StoredState(), **about))


def look_as(walstream: Walstream, **options: Any) -> Inspection:
    """Inspect what a walstream is configured for, with what its folder knows."""
    stored, publications = known(walstream)
    return look(
        walstream.dsn,
        stored,
        publications=publications,
        **{"slot": walstream.slot, **walstream.source, **options},
    )


def known(
    walstream: Walstream,
) -> tuple[StoredState, dict[str, StoredPublication] | None]:
    """Read what the state folder of a walstream that has ended says."""
    if not walstream.state.exists():
        return StoredState(), None
    with LmdbStore(walstream.state) as positions:
        intent = INTENT.read(positions)
        stored = StoredState(
            position=positions.position(),
            intent=intent is not None,
            consistent_point=intent.consistent_point if intent else None,
        )
        return stored, PUBLICATIONS.read(positions)


def of(inspection: Inspection, code: str, subject: str = "") -> list[Finding]:
    return [
        finding
        for finding in inspection.findings
        if finding.code == code and subject in finding.subject
    ]


def one(
    inspection: Inspection,
    code: str,
    severity: Severity,
    exit_code: int = 0,
    subject: str = "",
) -> Finding:
    """Claim that there is one such finding, that it says why, and how to end it."""
    found = of(inspection, code, subject)
    assert len(found) == 1, inspection.findings
    (finding,) = found
    assert (finding.severity, finding.exit_code) == (severity, exit_code), finding
    assert finding.subject, finding
    assert finding.what, finding
    assert finding.why, finding
    return finding


def stops(inspection: Inspection) -> list[tuple[str, int]]:
    """Give what would stop `run`, in order."""
    return [
        (finding.code, finding.exit_code)
        for finding in inspection.findings
        if finding.severity is Severity.STOP
    ]


def repair(database: Database, repair: Repair) -> None:
    """Run a repair's SQL as printed, a line at a time, in one session."""
    assert repair.sql, repair
    with psycopg.connect(database.dsn, autocommit=True) as connection:
        for line in repair.sql.splitlines():
            connection.execute(line.encode())


def command(walstream: Walstream, repair: Repair) -> str:
    """Run a repair's command as printed; who is asked says yes."""
    assert repair.command, repair
    walstream.configuration.write_text(toml(walstream.document()), "utf-8")
    words = repair.command.split()
    assert words[0] == "walstream"
    done = verb(walstream.configuration, *words[1:], "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
