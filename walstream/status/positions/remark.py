"""What is worth knowing of a position beside the verdict: pure."""

from collections.abc import Iterator
from typing import Final

from walstream.finding import Finding, note, warning
from walstream.kafka.last_op import LastOp
from walstream.lsn import Lsn, show
from walstream.status.positions.model import ServerFacts, StateFacts

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
            "this server never wrote it: was it restored to an earlier state, or is"
            " the record older than a reset? Consumers that do not follow the epoch"
            " take what comes next for repeats",
        )


def _beside_position(subject: str, at: str, lsn: Lsn, resume: Lsn) -> Iterator[Finding]:
    if lsn >= resume:
        yield note(
            "topics-beyond-position",
            subject,
            f"Kafka holds changes up to {at}, beyond the position {show(resume)}",
            "they come again, under the same names: as after a crash, or a rewind",
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
