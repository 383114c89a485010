"""Warnings that are said once for each subject, however often it is looked at."""

from dataclasses import dataclass, field

import structlog

from walstream.errors import NO_REPAIR, Repair
from walstream.telemetry.fields import HINT, REPAIR, TABLE

_log = structlog.get_logger()


@dataclass(slots=True)
class WarningOnce:
    """Knows what it said."""

    _told: set[tuple[str, str]] = field(default_factory=set)

    def warn(
        self,
        subject: str,
        what: str,
        *,
        hint: str = "",
        repair: Repair = NO_REPAIR,
        kind: str = TABLE,
    ) -> None:
        """Log it of a table, or of another `kind`, unless it was logged."""
        if (subject, what) in self._told:
            return
        self._told.add((subject, what))
        said = {kind: subject}
        if hint:
            said[HINT] = hint
        if cure := repair.sql or repair.command:
            said[REPAIR] = cure
        _log.warning(what, **said)

    def forget(self, subject: str) -> None:
        """Log it again, should it come once more."""
        self._told = {one for one in self._told if one[0] != subject}
