"""Line of the log about Kafka and the position, one for each sink at a start."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from walstream.kafka.delivery_verdict import Agreement, StreamPlace, TailVerdict
from walstream.kafka.offsets import Partition
from walstream.lsn import Lsn, show
from walstream.telemetry.fields import LSN, TOPIC

_DISAGREE: Final = frozenset({Agreement.FOREIGN, Agreement.MISSING})


@dataclass(frozen=True, slots=True)
class StartReport:
    """One line of the log."""

    text: str
    fields: Mapping[str, object]
    is_bad: bool = False


def of(
    verdicts: Mapping[Partition, TailVerdict],
    late: Collection[str],
    place: StreamPlace,
) -> StartReport | None:
    """Return what to say; None: nothing is beyond the position.

    Of `late` topics, whose rules are new, nothing was read: up to the end of the
    server's WAL, all may be there.
    """
    bad = [one for one, found in verdicts.items() if found.verdict in _DISAGREE]
    if bad:
        return _disagreement(min(bad), verdicts, len(bad))
    left_out = [found.last for found in verdicts.values() if found.left_out]
    up_to = max((last for last in left_out if last is not None), default=0)
    again = {
        one: found.last or 0
        for one, found in verdicts.items()
        if found.verdict is Agreement.REPEATED
    }
    end = max([*again.values(), place.flush if late else 0])
    if end > place.resume:
        return StartReport(
            "what Kafka has beyond the position may come again: it was sent by other "
            "rules, or is rewound",
            {
                "begins": show(place.resume),
                "up_to": show(end),
                "topics": len({one.topic for one in again}.union(late)),
            },
        )
    if left_out:
        return StartReport(
            "what Kafka has already is left out",
            {"partitions": len(left_out), "up_to": show(up_to)},
        )
    return None


def of_position(why: str, up_to: Lsn, resume: Lsn) -> StartReport:
    """Return what to say of a position in Kafka: up to where it leaves something out.

    With `why` it does not count.
    """
    if why:
        text = "Kafka and the position disagree: nothing is left out"
        return StartReport(text, {"reason": why}, is_bad=True)
    if up_to:
        said = {"begins": show(resume), "up_to": show(up_to)}
        return StartReport("what Kafka has already is left out", said)
    text = "Kafka has nothing beyond the position"
    return StartReport(text, {"position": show(resume)})


def no_position(resume: Lsn, *, is_other: bool) -> StartReport:
    """Return what to say where none is found; `is_other`: but another's record."""
    text = "Kafka has no position: what it has beyond ours, if anything, comes again"
    said: dict[str, object] = {"begins": show(resume)}
    if is_other:
        said["reason"] = "what is under the sink's name was not written by walstream"
    return StartReport(text, said, is_bad=is_other)


def _disagreement(
    one: Partition, verdicts: Mapping[Partition, TailVerdict], count: int
) -> StartReport:
    """Name the first partition."""
    found = verdicts[one]
    fields: dict[str, object] = {TOPIC: one.topic, "partition": one.number}
    if found.last is not None:
        fields[LSN] = show(found.last)
    if count > 1:
        fields["partitions"] = count
    return StartReport(
        f"Kafka and the position disagree: {found.why}", fields, is_bad=True
    )
