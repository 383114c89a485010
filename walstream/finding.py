"""Findings of `check`: what is wrong, why it matters, and how to repair it."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

from walstream.errors import NO_REPAIR, RETRIED, Repair, WalstreamError


class Severity(StrEnum):
    """Severity of a finding, the worst first."""

    STOP = "stop"  # `run` would end, or wait, here
    WARNING = "warning"  # it runs, and somebody will be sorry
    NOTE = "note"  # worth knowing


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that an operator should know. No row values, no secrets."""

    code: str  # stable, for scripts: "wal-level"
    subject: str  # what it is about: "server", "table public.orders", "topic orders"
    what: str
    why: str
    severity: Severity
    repair: Repair = NO_REPAIR
    exit_code: int = 0  # that `run` would end with; 5: it would wait and try again

    @classmethod
    def of(cls, error: WalstreamError, code: str, subject: str, why: str = "") -> Self:
        """Return the finding of an error that would stop `run`."""
        return cls(
            code=code,
            subject=subject,
            what=str(error.args[0]),
            why=why or error.hint,
            severity=Severity.STOP,
            repair=error.repair,
            exit_code=error.exit_code,
        )

    @classmethod
    def waits(cls, error: WalstreamError, code: str, subject: str, why: str) -> Self:
        """Return the finding of an error that `run` waits for, with its repair last."""
        found = cls.of(error, code, subject, why)
        if error.repair or not error.hint or error.hint.startswith(RETRIED):
            return found
        return replace(found, repair=Repair(then=error.hint))


def warning(
    code: str, subject: str, what: str, why: str, repair: Repair = NO_REPAIR
) -> Finding:
    """Return a finding that does not stop `run`."""
    return Finding(code, subject, what, why, Severity.WARNING, repair)


def note(
    code: str, subject: str, what: str, why: str, repair: Repair = NO_REPAIR
) -> Finding:
    """Return a finding that is only worth knowing."""
    return Finding(code, subject, what, why, Severity.NOTE, repair)
