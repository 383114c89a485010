"""Audit of a sink that writes in Kafka's transactions, by their position there."""

from dataclasses import dataclass

from walstream.config import KafkaSinkConfig
from walstream.errors import TopicLost
from walstream.kafka.delivery_audit import TopicAudit
from walstream.kafka.delivery_verdict import Agreement
from walstream.kafka.position_reader import read_position
from walstream.kafka.producer_config import client_properties
from walstream.kafka.replay_mark import ReplayMark
from walstream.kafka.transaction_position import (
    TransactionPosition,
    decode_position,
    is_before,
    strange,
)
from walstream.lsn import Lsn, show
from walstream.status.positions.audit_model import SinkAudit

TOLD: str = "its position in Kafka tells what was delivered"


@dataclass(frozen=True, slots=True)
class StartPlace:
    """Point at which a start would begin now, and what it would compare."""

    resume: Lsn
    flush: Lsn  # the server's WAL end
    origin: str
    replay: ReplayMark | None = None


def position_of(
    config: KafkaSinkConfig, source: str, name: str
) -> TransactionPosition | None:
    """Return the position under a transactional id; None: there is none.

    Raises a WalstreamError where no broker answers.
    """
    topic = config.positions_topic_of(source)
    client = client_properties(config.producer)
    try:
        found = read_position(client, topic, name.encode(), lambda: False)
    except TopicLost:
        return None
    return None if found is None else decode_position(found)


def judged(
    sink: str,
    found: TransactionPosition | None,
    place: StartPlace,
    topics: list[TopicAudit],
) -> SinkAudit:
    """Compare a sink's position in Kafka with where a start would begin now."""
    verdict, text, up_to = _judged(found, place)
    lost = [one for one in topics if one.verdict is Agreement.MISSING]
    if lost:
        verdict = Agreement.MISSING
        places = "1 topic" if len(lost) == 1 else f"{len(lost):,} topics"
        text = f"{places}: {lost[0].why}"
    return SinkAudit(sink, verdict, text, place.resume, up_to, topics)


def _judged(
    found: TransactionPosition | None, place: StartPlace
) -> tuple[Agreement, str, Lsn | None]:
    begins = show(place.resume)
    if found is None:
        return Agreement.UNKNOWN, "no transaction of it told a position yet", None
    if why := strange(found, place.origin, place.flush):
        return Agreement.FOREIGN, f"of the position in Kafka: {why}", found.lsn
    if found.lsn < place.resume:
        text = f"nothing is beyond the position {begins}"
        return Agreement.AGREE, text, None
    upto = show(found.lsn)
    if why := is_before(found, place.replay):
        text = f"changes from {begins} to {upto} come again: {why}"
        return Agreement.REPEATED, text, found.lsn
    text = f"changes from {begins} to {upto} are there, and will be left out"
    return Agreement.AGREE, text, found.lsn
