"""Looks at one chained source: where its group is in each partition."""

from collections.abc import Iterator
from pathlib import Path

from walstream.config import Config, KafkaSource
from walstream.errors import PermissionLacking
from walstream.finding import Finding, note
from walstream.kafka.topic_finding import listed
from walstream.state.lock import holder
from walstream.status.kafka import GroupSight
from walstream.status.lookup.kafka import kept_of, look
from walstream.status.positions.model import (
    ChainedStanding,
    GroupPlace,
    StartOutcome,
    Verdict,
)
from walstream.status.positions.verdict import refusal


def standing(config: Config, name: str, source: KafkaSource) -> ChainedStanding:
    """Ask the group's brokers; what is kept here are only topics and figures."""
    seen = look(name, source, Path(config.state) / name)
    return ChainedStanding(
        source=name,
        group=source.group,
        verdict=_verdict(config, name, source, seen),
        partitions=[
            GroupPlace(
                where.topic,
                where.number,
                place.stored,
                place.bounds.first,
                place.bounds.end,
                place.behind,
            )
            for where, place in sorted(seen.places.items())
        ],
        notes=list(_notes(seen)),
    )


def _verdict(
    config: Config, name: str, source: KafkaSource, seen: GroupSight
) -> Verdict:
    folder = Path(config.state) / name
    for problem in (kept_of(folder).problem, seen.unreachable, seen.lost):
        if problem is not None:
            return refusal(problem, name, config.secrets.scrub)
    if (process := _process(folder)) is not None:
        text = f"process {process} relays records as group {source.group!r}"
        return Verdict(StartOutcome.CHAINING, text)
    text = f"run would continue where group {source.group!r} is"
    return Verdict(StartOutcome.CHAIN, text)


def _process(folder: Path) -> str | None:
    try:
        return holder(folder)
    except PermissionLacking:
        return None  # said of the folder itself


def _notes(seen: GroupSight) -> Iterator[Finding]:
    if seen.missing:
        yield note(
            "upstream-topic-missing",
            listed(seen.missing),
            "does not exist upstream, or this user may not see it",
            "run would wait for it and relay the others",
        )
