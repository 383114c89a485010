"""Sum of an audit: a verdict in words for each sink, and what a slot has lost. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from walstream.kafka.delivery_audit import PartitionAudit, TopicAudit
from walstream.kafka.delivery_verdict import Agreement, worst
from walstream.lsn import Lsn, show
from walstream.status.positions.audit_model import SinkAudit, WalGap
from walstream.status.positions.verdict import StartFacts

_ANSWERED: Final = frozenset({Agreement.AGREE, Agreement.REPEATED})


def of_sink(
    sink: str, resume: Lsn, topics: list[TopicAudit], why: str = ""
) -> SinkAudit:
    """Sum the topics of a sink up; `why` its records say nothing, if so."""
    partitions = [one for topic in topics for one in topic.partitions]
    verdicts = [one.verdict for one in partitions]
    verdicts += [one.verdict for one in topics if one.verdict is Agreement.MISSING]
    if why:
        verdicts.append(Agreement.UNKNOWN)
    verdict = worst(verdicts)
    beyond = [
        one.last
        for one in partitions
        if one.last is not None and one.last >= resume and one.verdict in _ANSWERED
    ]
    up_to = max(beyond, default=None)
    text = _text(verdict, resume, topics, why)
    return SinkAudit(sink, verdict, text, resume, up_to, topics)


def with_gap(found: SinkAudit, lacks: str) -> SinkAudit:
    """Return it with what a sink was not sent; a backfill may have brought the rows.

    Worse verdicts are told alone.
    """
    if not lacks or worst((found.verdict, Agreement.UNKNOWN)) is not Agreement.UNKNOWN:
        return found
    text = f"{found.text}; {lacks}. Only walstream backfill --replace cures that"
    return replace(found, verdict=Agreement.UNKNOWN, text=text)


def _text(
    verdict: Agreement, resume: Lsn, topics: Sequence[TopicAudit], why: str
) -> str:
    partitions = [one for topic in topics for one in topic.partitions]
    left_out = [one for one in partitions if one.left_out]
    said = [one for one in partitions if one.verdict is verdict]
    if verdict is Agreement.MISSING:
        lost = [one for one in topics if one.verdict is verdict]
        reason = lost[0].why or said[0].why if lost else ""
        return f"{_places(lost, said)}: {reason}"
    if verdict is Agreement.FOREIGN:
        return f"{_count(said)}: {said[0].why}"
    if verdict is Agreement.UNKNOWN:
        return why or f"{_count(said)}: {said[0].why}"
    if verdict is Agreement.REPEATED:
        return (
            f"changes from {show(resume)} to {_furthest(said)} come again in"
            f" {_count(said)}: {said[0].why}"
        )
    if left_out:
        return (
            f"changes from {show(resume)} to {_furthest(left_out)} are there in"
            f" {_count(left_out)}, and will be left out"
        )
    return f"nothing is beyond the position {show(resume)}"


def _places(lost: Sequence[TopicAudit], said: Sequence[PartitionAudit]) -> str:
    if any(one.why for one in lost):
        return "1 topic" if len(lost) == 1 else f"{len(lost):,} topics"
    return _count(said)


def _count(found: Sequence[PartitionAudit]) -> str:
    return "1 partition" if len(found) == 1 else f"{len(found):,} partitions"


def _furthest(found: Iterable[PartitionAudit]) -> str:
    return show(max((one.last for one in found if one.last is not None), default=0))


def gap(seen: StartFacts) -> WalGap | None:
    """Return what the slot sends no more, for sure; None: nothing.

    A slot that a client reads now may be another instance's, which delivers it.
    """
    position, server, slot = seen.stored.position, seen.server, seen.slot
    if position is None or server is None or not server.flush_lsn:
        return None
    here = server.system_identifier, server.database, seen.source.slot
    if here != (position.system_identifier, position.database, position.slot):
        return None  # it is not known of which it is said
    resume = position.resume
    if slot is None:
        return WalGap(resume, server.flush_lsn, f"slot {position.slot!r} is gone")
    if slot.lost:
        why = f"slot {slot.name!r} cannot be read ({slot.lost})"
        return WalGap(resume, server.flush_lsn, why)
    confirmed = slot.confirmed_flush_lsn or 0
    if confirmed > resume and not slot.active_pid:
        why = (
            f"slot {slot.name!r} is confirmed beyond the position: another client read"
            " it, or the state folder is an old copy"
        )
        return WalGap(resume, confirmed, why)
    return None
