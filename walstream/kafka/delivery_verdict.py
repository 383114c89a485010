"""Verdict on a partition's tail beside the position, at a start and in an audit.

Pure: no clock, no I/O. `missing` is said only where it is certain: an empty topic may
never have had a record, and a compacted one may have lost those of its older ones.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from walstream.kafka.tail_reader import Tail
from walstream.lsn import Lsn, show
from walstream.telemetry.json_types import ShownLsn


class Agreement(StrEnum):
    """Agreement of Kafka with the position, the best first."""

    AGREE = "agree"  # nothing comes twice: none is beyond it, or what is is left out
    REPEATED = "repeated"  # what is beyond the position comes again
    UNKNOWN = "unknown"  # it could not be read
    FOREIGN = "foreign"  # another history's records are there, or another program's
    MISSING = "missing"  # what was delivered, or not yet, is gone


_WORST_LAST: Final = list(Agreement)


def worst(verdicts: Iterable[Agreement]) -> Agreement:
    """Return the worst of all; AGREE of none."""
    return max(verdicts, key=_WORST_LAST.index, default=Agreement.AGREE)


@dataclass(frozen=True, slots=True)
class StreamPlace:
    """Place of a stream in the history of its server."""

    resume: Lsn
    flush: Lsn  # the end of the server's WAL
    origin: str = ""  # "system_identifier/database/epoch"; "": not compared


@dataclass(frozen=True, slots=True)
class TopicRules:
    """Rules of one topic by which its tails are judged."""

    since: Lsn = 0  # nothing from here on was sent in an earlier era
    why: str = ""  # what is beyond the position comes again; "": it is left out
    is_alone: bool = True  # nobody else of the configuration writes there
    is_named: bool = True  # each of its records tells its name


@dataclass(frozen=True, slots=True)
class TailVerdict:
    """Verdict on one partition."""

    verdict: Agreement
    why: str = ""
    last: ShownLsn | None = None  # of the last change; null: none was found
    seq_id: int | None = None
    left_out: bool = False  # are changes there up to the last, and not sent again?


_EARLIER_ERA: Final = (
    "it was sent before its era began: by another configuration or version, to another"
    " topic of this name, or before a rewind"
)
_UNTIMED: Final = "its records have the broker's time, not that of the commit"
_EARLIER_EPOCH: Final = "the last records are of an earlier epoch"


def judge(
    tail: Tail, place: StreamPlace, rules: TopicRules, begin: int = 0
) -> TailVerdict:
    """Judge a partition whose records of earlier eras lie below the offset `begin`."""
    found = _by_name(tail, place, rules, is_earlier=0 <= tail.offset < begin)
    if not rules.is_alone:
        return found
    if rules.is_named and tail.strange >= begin and tail.strange > tail.offset:
        why = f"the record at offset {tail.strange} is not walstream's"
        return replace(found, verdict=Agreement.FOREIGN, why=why)
    if not 0 <= tail.offset < begin and (told := _another(tail, place)):
        if rules.why and _is_older(told, place.origin):
            return replace(found, verdict=Agreement.AGREE, why=_EARLIER_EPOCH)
        why = f"a record at the end is of {told}, and the position of {place.origin}"
        return replace(found, verdict=Agreement.FOREIGN, why=why, left_out=False)
    return found


def truncated(end: int, begin: int) -> TailVerdict:
    """Judge a partition that ends below where it ended before."""
    why = f"it ends at offset {end}, and ended at {begin} before: it was cut off"
    return TailVerdict(Agreement.MISSING, why)


def _by_name(
    tail: Tail, place: StreamPlace, rules: TopicRules, *, is_earlier: bool
) -> TailVerdict:
    if tail.name is None:
        return TailVerdict(Agreement.AGREE)
    lsn, seq_id = tail.name
    found = TailVerdict(Agreement.AGREE, "", lsn, seq_id)
    if lsn > place.flush:
        if is_earlier or not rules.is_alone:
            return found  # no change of this history
        why = (
            f"the last change is beyond the server's WAL, which ends at"
            f" {show(place.flush)}: it is of another history"
        )
        return replace(found, verdict=Agreement.FOREIGN, why=why)
    if lsn < place.resume:
        return found
    why = rules.why
    if not why and tail.last is None:
        why = _UNTIMED
    if not why and (is_earlier or lsn < rules.since):
        why = _EARLIER_ERA
    if why:
        return replace(found, verdict=Agreement.REPEATED, why=why)
    return replace(found, left_out=True)


def _another(tail: Tail, place: StreamPlace) -> str:
    """Return whose the newest record is that tells it, if it is another's."""
    known = tail.origin and place.origin
    return tail.origin if known and tail.origin != place.origin else ""


def _is_older(origin: str, than: str) -> bool:
    """Return whether it is an earlier epoch of the same database."""
    (here, _, one), (there, _, other) = origin.rpartition("/"), than.rpartition("/")
    numbers = one.isdecimal() and other.isdecimal()
    return here == there and numbers and int(one) < int(other)
