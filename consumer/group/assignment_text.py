"""Text on the partitions that a member reads."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from consumer.group.assigned_partition import Place

_NAMED: Final = 5  # topics


def assignment_text(places: Iterable[Place]) -> str:
    """Return the topics, and how many of their partitions a member has."""
    counts = Counter(topic for topic, _ in places)
    if not counts:
        return "no partition: other members have them, or there is no such topic"
    named = [
        f"{topic}, {_number(count, 'partition')}"
        for topic, count in sorted(counts.items())[:_NAMED]
    ]
    left = len(counts) - len(named)
    if left:
        named.append(f"and {_number(left, 'more topic')}")
    if len(counts) > 1:
        named.append(f"{_number(counts.total(), 'partition')} in all")
    return "; ".join(named)


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
