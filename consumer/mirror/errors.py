"""Errors of the target: tried again for a while, or the reason to stop.

Partitions and tables arrive out of step, so a refusal may be cured by an op of another
partition. What stays is told without values: constraint, column and SQLSTATE.
"""

from collections.abc import Callable
from typing import Final

import psycopg
from psycopg import errors, sql

from consumer.handler import Fatal, Retry
from consumer.op import Op
from walstream.errors import WalstreamError
from walstream.lsn import show
from walstream.telemetry import runtime

# another partition may still bring the cure, or the table changed under a statement
_CURABLE: Final = (
    errors.UniqueViolation,
    errors.ForeignKeyViolation,
    errors.RestrictViolation,
    errors.ExclusionViolation,
    errors.UndefinedColumn,
    errors.UndefinedTable,
    errors.InvalidColumnReference,  # the index of an ON CONFLICT is gone
    errors.FeatureNotSupported,  # a prepared plan whose table changed
)
_OURS: Final = (
    psycopg.IntegrityError,
    psycopg.DataError,
    psycopg.ProgrammingError,
    psycopg.NotSupportedError,
)
_RETRYABLE_CLASSES: Final = ("40", "53", "55", "57")  # the consumer's own business
_HIDES_ROWS: Final = "check_enable_rls"  # raises it, whatever the server's language
_BYPASS: Final = (
    "run ALTER ROLE … BYPASSRLS; for the dsn's role: an Update or Delete of a hidden"
    " row would do nothing"
)


class MirrorError(WalstreamError):
    """An op that the target cannot take."""


class RetryPatience:
    """Patience with refused ops: the time of the first refusal, by partition."""

    def __init__(
        self, limit_s: float, clock: Callable[[], float] = runtime.monotonic
    ) -> None:
        self.limit_s = limit_s
        self._clock = clock
        self._since: dict[tuple[str, int], tuple[tuple[int, int], float]] = {}
        self._refused: dict[tuple[str, int], tuple[int, int]] = {}  # the last op

    def is_first(self, op: Op) -> bool:
        """Return whether the last refusal in its partition was another op's."""
        place, name = (op.record.topic, op.record.partition), (op.lsn, op.seq_id)
        known, self._refused[place] = self._refused.get(place), name
        return known != name

    def lasts(self, op: Op) -> bool:
        """Return whether this op may be tried again; counts from its first refusal."""
        place = (op.record.topic, op.record.partition)
        name = (op.lsn, op.seq_id)
        now = self._clock()
        known, since = self._since.get(place, (None, now))
        if known != name:
            since = now
        self._since[place] = (name, since)
        return now - since < self.limit_s


def stop(op: Op, what: str, hint: str = "") -> Fatal:
    """Make the end: table and position of the op, what is wrong, and what cures it."""
    where = f"{op.table.full_name} at {show(op.lsn)}, {op.seq_id}"
    return Fatal(MirrorError(f"{where}: {what}", hint=hint))


def wait(patience: RetryPatience, op: Op, what: str, hint: str = "") -> Retry | Fatal:
    """Try again while patience lasts."""
    if patience.lasts(op):
        return Retry(what)
    return stop(op, f"{what}, for {patience.limit_s:g} s", hint)


def translate(
    error: psycopg.Error, patience: RetryPatience, op: Op
) -> Retry | Fatal | psycopg.Error:
    """Return what to raise: an outage or a deadlock is left to the consumer.

    Before an op stops it all is tried once more, as after a deadlock.
    """
    state = error.sqlstate or ""
    if not isinstance(error, _OURS) or state[:2] in _RETRYABLE_CLASSES:
        return error
    if error.diag.source_function == _HIDES_ROWS:
        return stop(op, f"row-level security hides its rows ({state})", _BYPASS)
    what = _said(error)
    hint = _hint(error, whole=not patience.limit_s)
    if isinstance(error, _CURABLE) and patience.limit_s:
        return wait(patience, op, what, hint)
    if patience.is_first(op):
        # its table may have been altered: what was known of it is forgotten
        return errors.SerializationFailure(f"{what}: it is tried once more")
    return stop(op, what, hint)


def _said(error: psycopg.Error) -> str:
    # the server's own message may hold a value
    names = {
        "table": error.diag.table_name,
        "column": error.diag.column_name,
        "constraint": error.diag.constraint_name,
    }
    about = "".join(f", {word} {name}" for word, name in names.items() if name)
    return f"the target refuses it: {type(error).__name__} ({error.sqlstate}{about})"


def _hint(error: psycopg.Error, *, whole: bool) -> str:
    constraint = error.diag.constraint_name
    match error:
        case errors.ForeignKeyViolation() | errors.RestrictViolation() if whole:
            return (
                "the source checks it behind a statement, the mirror behind each row:"
                f" ALTER TABLE {_names(error.diag.schema_name, error.diag.table_name)}"
                f" ALTER CONSTRAINT {_names(constraint)} DEFERRABLE;"
            )
        case errors.ForeignKeyViolation() | errors.RestrictViolation():
            return (
                f"the other row did not arrive: drop {constraint} in the target, or"
                " disable it for the mirror's role: ALTER ROLE the_role"
                " SET session_replication_role = replica"
            )
        case errors.UniqueViolation() | errors.ExclusionViolation():
            return (
                f"the other row keeps the value: drop {constraint} in the target, or"
                " backfill the table into an empty copy"
            )
        case errors.GeneratedAlways():
            return (
                "the source gave an identity column another value, which nothing sets"
                f" where it is GENERATED ALWAYS; in the target: {error}"
            )
        case errors.InsufficientPrivilege():
            return "grant SELECT, INSERT, UPDATE, DELETE, TRUNCATE to the dsn's role"
        case _:
            return "make the target's table like the source's"


def _names(*names: str | None) -> str:
    return sql.Identifier(*(name or "" for name in names)).as_string()
