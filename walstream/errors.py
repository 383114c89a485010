"""Errors of walstream, as the operator sees them.

    WalstreamError              exit code 1, a defect unless a leaf says otherwise
    +-- ConfigError             2  usage or configuration
    +-- HistoryError            3  a gap, or another history: needs an operator
    |   +-- TopicMissing        2  nothing is lost: the topic has to be created
    +-- PermissionLacking       4  a right is missing
    +-- Transient               5  try again: the network, a server that starts
    +-- DecodeError             1  bytes that pgoutput never sends

An error says what, on what, at where; its `hint` is the operator's next command. Never
a row's value, never a secret.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Self


@dataclass(frozen=True, slots=True)
class Repair:
    """A repair, to run exactly as printed: SQL, or a shell command."""

    sql: str = ""  # statements, each with its semicolon
    command: str = ""  # "{source}" stands for the name of the source it is about
    then: str = ""  # what is left to a person: "restart PostgreSQL"

    def of_source(self, name: str) -> "Repair":
        """Return the repair with the source's name, which an adapter does not know."""
        return replace(self, command=self.command.replace("{source}", name))

    def of_topic(self, name: str) -> "Repair":
        """Return the repair with the topic's name."""
        return replace(self, command=self.command.replace("{topic}", name))

    def __bool__(self) -> bool:
        return bool(self.sql or self.command or self.then)


RETRIED: Final = "walstream tries again by itself"
"""Hint of a `Transient`. A command that ends says something else: `final`."""
_RUN_AGAIN: Final = "run the command again when it answers"

NO_REPAIR: Final = Repair()
RESET: Final = Repair(
    command="walstream positions reset {source}", then="walstream run, unless it runs"
)

SINK_AGAIN: Final = Repair(
    then="take the sink out of the source's `sinks`, walstream reload; put it back, "
    "walstream reload; then walstream backfill 'TABLES' --replace sends the rows"
)
"""What cures a detached sink that lacks changes for good; the others stream on."""


class WalstreamError(Exception):
    """A defect, and the base class of errors: a message, and what to do about it.

    `hint` is for people; `repair` can be run as printed.
    """

    exit_code: ClassVar[int] = 1
    kind: ClassVar[str] = "defect"  # in metrics
    retryable: ClassVar[bool] = False  # does the same again, later, make sense?
    renewable: ClassVar[bool] = False  # may credentials that are read anew cure it?

    def __init__(
        self, message: str, *, hint: str = "", repair: Repair = NO_REPAIR
    ) -> None:
        super().__init__(message)
        self.hint = hint
        self.repair = repair

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message}\n  {self.hint}" if self.hint else message

    def final(self) -> str:
        """Return the text for a process that ends: nothing tries again behind it."""
        return str(self).replace(RETRIED, _RUN_AGAIN)

    @property
    def final_hint(self) -> str:
        """Return the hint for a process that ends."""
        return self.hint.replace(RETRIED, _RUN_AGAIN)

    def cleaned(self, secrets: Iterable[str]) -> Self:
        """Return the same error with its secrets masked."""
        text, hint = str(self.args[0]), self.hint
        for secret in secrets:
            text, hint = text.replace(secret, "***"), hint.replace(secret, "***")
        return type(self)(text, hint=hint, repair=self.repair)


class ConfigError(WalstreamError):
    """The configuration or the command line is wrong."""

    exit_code = 2
    kind = "configuration"


class CertificateRefused(ConfigError):
    """A certificate is not valid: it may have expired and been replaced."""

    renewable = True


class CommandMissing(ConfigError):
    """A command cannot be run: its package may be in the middle of an upgrade."""

    renewable = True


class HistoryError(WalstreamError):
    """Continuing would lose or mix changes: an operator has to decide."""

    exit_code = 3
    kind = "history"


class SlotLost(HistoryError):
    """The slot is gone, invalidated, or not ours."""


class PublicationLost(HistoryError):
    """The publication is gone or replaced: rows may be missing from the stream."""


class TopicLost(HistoryError):
    """A topic is missing, was deleted or recreated, or has other partitions.

    A reader names in `partitions` those that it reads no further.
    """

    partitions: frozenset[tuple[str, int]] = frozenset()


class TopicMissing(TopicLost):
    """A topic never existed, and walstream may not create it: nothing is lost."""

    exit_code = 2
    kind = "configuration"


class RecordRefused(HistoryError):
    """Kafka never takes this record: too large, or refused by the topic's rules."""


class StateDamaged(HistoryError):
    """The state folder is damaged."""


class PermissionLacking(WalstreamError):
    """PostgreSQL or Kafka refuses because a right is missing."""

    exit_code = 4
    kind = "permission"


class LoginRefused(PermissionLacking):
    """A server does not let this user in: the password may have been rotated."""

    renewable = True


class Transient(WalstreamError):
    """A temporary error: retried with backoff, by default for ever."""

    exit_code = 5
    kind = "transient"
    retryable = True


class Restart(Transient):
    """Not an error: the stream restarts with other settings."""


class DecodeError(WalstreamError):
    """Bytes that are not a pgoutput message: the tag, and the offset of the fault."""

    def __init__(self, reason: str, *, tag: str, offset: int) -> None:
        super().__init__(
            f"pgoutput message {tag!r}: {reason} at byte {offset}",
            hint="report this with the server's version: nothing was confirmed",
        )
        self.reason = reason
        self.tag = tag
        self.offset = offset
