"""Capture of a source, for its status: publications, tables left out. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

_MOST: Final = 50  # limits that a report names


@dataclass(frozen=True, slots=True)
class CaptureLimit:
    """A table, or a pattern of `tables`, that is not captured whole."""

    reason: str
    sql: str = ""  # statements that repair it, or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureReport:
    """Capture of a source, as of the last look."""

    publications: tuple[str, ...] = ()
    limits: Mapping[str, CaptureLimit] = field(default_factory=dict)
    more: int = 0  # limits that are not named


def capture_report(
    publications: list[str], limits: Mapping[str, CaptureLimit]
) -> CaptureReport:
    """Return the report, with a bounded number of limits."""
    named = dict(list(limits.items())[:_MOST])
    return CaptureReport(
        publications=tuple(publications),
        limits=named,
        more=len(limits) - len(named),
    )
