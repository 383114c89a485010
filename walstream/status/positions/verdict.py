"""Verdict on a source: what `run` would do, by its own start table.

The rows that stop it come with the error that `run` would end with.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from walstream.config import PostgresSource
from walstream.errors import NO_REPAIR, Repair, Transient, WalstreamError
from walstream.finding import Finding, note, warning
from walstream.kafka.last_op import LastOp
from walstream.lsn import Lsn, show
from walstream.postgres import server as servers
from walstream.postgres import timeline
from walstream.postgres.server import Server
from walstream.postgres.slot import Slot
from walstream.postgres.slot_inventory import SlotReader
from walstream.postgres.start_table import Decision, Step, StoredState, decide
from walstream.status.positions.model import (
    ServerFacts,
    StartOutcome,
    StateFacts,
    Verdict,
)

_WAITS: Final = Transient.exit_code


@dataclass(slots=True)
class StartFacts:
    """Inputs of the start table, as far as they could be read."""

    name: str  # of the source
    source: PostgresSource
    stored: StoredState = field(default_factory=StoredState)
    process: int | None = None  # of ours, that streams the source now
    slot: Slot | None = None
    reader: SlotReader | None = None  # who holds the slot
    server: Server | None = None
    problem: WalstreamError | None = None  # why it is not known whole


def verdict(seen: StartFacts, scrub: Callable[[str], str]) -> Verdict:
    """Judge; `scrub` takes the secrets out of what servers say."""
    try:
        decision = _decide(seen)
        return _say(seen, decision)
    except WalstreamError as error:
        return refusal(error, seen.name, scrub)


def refusal(error: WalstreamError, source: str, scrub: Callable[[str], str]) -> Verdict:
    """Return a message that `run` would meet this error."""
    problem = finding(error, "start", f"source {source}", scrub)
    problem = replace(problem, repair=problem.repair.of_source(source))
    if error.exit_code == _WAITS:
        return Verdict(
            StartOutcome.WAIT, "run would wait, and try again", None, problem
        )
    text = f"run would stop with exit code {error.exit_code}"
    return Verdict(StartOutcome.STOP, text, None, problem)


def finding(
    error: WalstreamError, code: str, subject: str, scrub: Callable[[str], str]
) -> Finding:
    """Make the finding of an error that may quote a server."""
    found = Finding.of(error, code, subject)
    return replace(found, what=scrub(found.what), why=scrub(found.why))


def _decide(seen: StartFacts) -> Decision:
    if seen.problem is not None:
        raise seen.problem
    if seen.server is None:
        raise Transient("the server was not asked")
    position = seen.stored.position
    servers.check(
        seen.server,
        seen.source.encoding,
        resuming=position is not None,
        allow_synchronous=seen.source.allow_synchronous,
    )
    decision = decide(seen.name, seen.stored, seen.slot, seen.server, adopt=False)
    if position is not None:
        given = seen.stored.given
        timeline.check(seen.source.dsn, seen.name, position, given, seen.server)
    return decision


def _say(seen: StartFacts, decision: Decision) -> Verdict:
    at = decision.resume
    match decision.step:
        case Step.STREAM:
            return Verdict(StartOutcome.STREAM, f"run would stream from {show(at)}", at)
        case Step.CREATE:
            text = "run would create publication and slot, and stream from there"
            return Verdict(StartOutcome.CREATE, text)
        case Step.ADOPT:
            text = f"run would take slot {seen.source.slot!r}, and stream from"
            return Verdict(StartOutcome.ADOPT, f"{text} {show(at)}", at)
        case Step.WAIT:
            return _say_in_use(seen, at)


def _say_in_use(seen: StartFacts, at: Lsn) -> Verdict:
    if seen.process is not None:
        text = f"walstream streams it, process {seen.process}; after a crash now, it"
        return Verdict(StartOutcome.STREAMING, f"{text} would begin at {show(at)}", at)
    reader = seen.reader
    pid = reader.pid if reader else seen.slot.active_pid if seen.slot else None
    who = f"pid {pid}" if pid else "another session"
    if reader is not None and reader.application:
        who += f" ({reader.application})"
    raise Transient(
        f"slot {seen.source.slot!r} is in use by {who}",
        hint="stop that one, or end its session; or, unless walstream runs: walstream "
        "run --take-over, which also ends it",
        repair=Repair(sql=f"SELECT pg_terminate_backend({pid});") if pid else NO_REPAIR,
    )


_MIB: Final = 1 << 20
_FAR: Final = 64 * _MIB  # so far beyond the last record, a position is worth a word


def remarks(
    name: str, state: StateFacts | None, server: ServerFacts | None, last: LastOp | None
) -> Iterator[Finding]:
    """Compare the furthest op of the source's topics with position and server."""
    if last is None:
        return
    subject = f"source {name}"
    at = f"({show(last.lsn)}, {last.seq_id})"
    resume = state.resume if state else None
    if resume is not None and state is not None and state.process is None:
        yield from _beside_position(subject, at, last.lsn, resume)
    # a standby tells no end of its WAL
    if server is not None and 0 < server.flush_lsn <= last.lsn:
        yield warning(
            "topics-beyond-server",
            subject,
            f"Kafka holds a change {at}, beyond the server's WAL, which ends at"
            f" {show(server.flush_lsn)}",
            "this server never wrote it: either it was restored to an earlier state, "
            "or the record is older than a reset. Consumers that ignore the epoch "
            "will treat the next changes as repeats",
        )


def _beside_position(subject: str, at: str, lsn: Lsn, resume: Lsn) -> Iterator[Finding]:
    if lsn >= resume:
        yield note(
            "topics-beyond-position",
            subject,
            f"Kafka holds changes up to {at}, beyond the position {show(resume)}",
            "they are sent again under the same names, as after a crash or a rewind",
        )
    elif resume - lsn > _FAR:
        yield note(
            "position-beyond-topics",
            subject,
            f"the last change in Kafka, {at}, lies {(resume - lsn) / _MIB:.1f} MiB"
            f" before the position {show(resume)}",
            "nothing else was written to captured tables since, or the topics no"
            " longer hold it",
        )
