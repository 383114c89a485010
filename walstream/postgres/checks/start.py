"""Findings about a start: the start table, the publications, room for the slot."""

from collections.abc import Iterator, Mapping
from typing import Final

from walstream.errors import ConfigError, Repair, SlotLost, Transient, WalstreamError
from walstream.finding import Finding, note
from walstream.postgres import (
    preflight,
    timeline,
)
from walstream.postgres import slot as slots
from walstream.postgres.checks.context import ServerContext
from walstream.postgres.publication_watch import DOUBT, DOUBTFUL
from walstream.postgres.slot import Slot
from walstream.postgres.start_table import Step, decide

_WAITS: Final = "run would wait for it, and try again by itself"


def look(seen: ServerContext) -> Iterator[Finding]:
    """Follow the start table; `seen.step` is what comes of it."""
    wanted = seen.wanted
    slot = slots.find(seen.connection, seen.source.slot)
    stored = wanted.stored
    seen.foreign_slot = slot is not None and not (
        stored.position is not None or stored.intended(seen.server)
    )
    if wanted.running and slot is not None and slot.active_pid is not None:
        # it moves on while we look: what we know of its position is behind
        seen.step = Step.STREAM
        yield from _publications(seen)
        return
    try:
        decision = decide(
            wanted.name, wanted.stored, slot, seen.server, adopt=wanted.adopt_slot
        )
    except Transient as error:
        subject = f"slot {seen.source.slot}"
        yield Finding.waits(error, "former-primary", subject, _WAITS)
        return
    except WalstreamError as error:
        code = "slot-lost" if isinstance(error, SlotLost) else "history"
        if isinstance(error, ConfigError):
            code = "slot-in-use"
        yield Finding.of(error, code, f"slot {seen.source.slot}")
        return
    seen.step = decision.step
    if decision.step is Step.WAIT:
        seen.step = Step.ADOPT if wanted.stored.position is None else Step.STREAM
        if slot is not None:
            adopt = wanted.adopt_slot
            held = preflight.in_use(seen.connection, slot, adopt=adopt)
            yield Finding.of(held, "slot-in-use", f"slot {slot.name}", _WAITS)
    yield from _publications(seen)
    yield from _room(seen, slot)
    yield from _timeline(seen)


def _publications(seen: ServerContext) -> Iterator[Finding]:
    subject = f"publication {seen.capture.name}"
    try:
        if seen.step is Step.STREAM:
            seen.capture.recall(seen.wanted.publications)
            look = seen.capture.examine(seen.connection)
            yield from _missed(seen, look.missed)
            for name in look.doubtful:
                yield note(
                    "doubtful",
                    f"table {name}",
                    DOUBTFUL,
                    DOUBT,
                    repair=Repair(command=seen.capture.mending.command([name])),
                )
            for name in look.taken_out:
                yield note(
                    "taken-out",
                    f"table {name}",
                    "was removed from the publication",
                    "its changes are no longer sent",
                )
        elif seen.step is Step.ADOPT:
            seen.capture.present(seen.connection)
    except WalstreamError as error:
        yield Finding.of(error, "publication-lost", subject)


def _missed(seen: ServerContext, missed: Mapping[str, str]) -> Iterator[Finding]:
    """Yield tables with rows that may be missing: `run` stops, or reads them again."""
    wanted = seen.wanted
    missed = {name: missed[name] for name in missed if name not in wanted.read_anew}
    if not missed:
        return
    if refusal := seen.capture.mending.refusal(missed, seen.facts):
        yield Finding.of(
            refusal, "publication-lost", f"publication {seen.capture.name}"
        )
        return
    for name, why in missed.items():
        yield note(
            "publication-change",
            f"table {name}",
            why,
            "rows may be missing from the stream: run reads the table again while it "
            "streams",
        )


def _room(seen: ServerContext, slot: Slot | None) -> Iterator[Finding]:
    """Name what a first start lacks, or a stream that nobody has begun."""
    if seen.step is Step.CREATE:
        lacking = preflight.obstacles(seen.connection, seen.capture, seen.facts)
    elif slot is None or slot.active_pid is None:
        lacking = preflight.lacking(seen.connection, slot=False)
    else:
        return
    for code, error in lacking:
        why = _WAITS if error.retryable else ""
        subject = f"publication {seen.capture.name}"
        said = f"{error.hint}; {why}" if error.hint and why else error.hint or why
        yield Finding.of(error, code, "server" if error.retryable else subject, said)


def _timeline(seen: ServerContext) -> Iterator[Finding]:
    position, given = seen.wanted.stored.position, seen.wanted.stored.given
    if seen.step is not Step.STREAM or position is None:
        return
    try:
        name = seen.wanted.name
        timeline.check(seen.source.dsn, name, position, given, seen.server)
    except WalstreamError as error:
        code = "connection" if error.retryable else "history"
        yield Finding.of(error, code, f"slot {position.slot}")
