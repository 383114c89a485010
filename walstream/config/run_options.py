"""Options of a run, beside the configuration."""

from dataclasses import dataclass, replace
from typing import Any, Final, Self

from walstream.errors import Transient

CONSENTS: Final = ("adopt_slot", "take_over", "accept_partitions", "accept_timeline")
"""Consents to the state when a run begins, not to what happens on later days."""
NOW: Final = "now"
"""The LSN at which the server is when the run begins."""
ALL_DONE: Final = 64
"""Exit code of a worker that has nothing left to do; 0 is a drain."""


@dataclass(frozen=True, slots=True)
class Options:
    """An operator's consents and wishes for this run; and where the driver is."""

    adopt_slot: bool = False
    take_over: bool = False
    accept_partitions: bool = False
    accept_timeline: bool = False  # nothing was sent but what is known of
    driver: str = ""  # the address of who runs Spark; the supervisor's word
    poll_once: bool = False  # poll each table once, and end
    sink: str = ""  # stream to this one alone: it is detached from its source
    end_backfilled: bool = False  # bring a backfill to its end, and stream no further
    until_lsn: str = ""  # stream what committed below this LSN, or `NOW`, and end

    @property
    def stopped_code(self) -> int:
        """Exit code of a run that is stopped: with an end, it was not reached."""
        return Transient.exit_code if self.until_lsn and not self.sink else 0

    def without_consents(self) -> Self:
        """Return them for a stream that begins again: its consents were used."""
        consents: dict[str, Any] = dict.fromkeys(CONSENTS, False)
        return replace(self, **consents)

    def ending_at(self, lsn: str) -> Self:
        """Return them with the LSN that `NOW` was; "": it is not known yet."""
        return replace(self, until_lsn=lsn) if self.until_lsn == NOW and lsn else self
