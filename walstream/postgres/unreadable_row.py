"""A change that PostgreSQL can decode in no try: a data exception (class 22).

Its text has no form in UTF-8, a row filter divides by zero, a type's output function
refuses the value. The change and the publication's filter stay in the WAL as they were,
so the error never passes.
"""

from typing import Final

import psycopg

from walstream.errors import RESET, HistoryError
from walstream.lsn import Lsn, show
from walstream.postgres.connection import without_values

_DATA: Final = "22"  # class of SQLSTATE
_PARAMETER: Final = "22023"  # also of a setting, as synchronized_standby_slots
_NO_UTF8: Final = {"22021", "22P05"}
_ADVICE: Final = (
    "no reader of this slot can get past it. {}, or exclude the row's table or column "
    "from the publication; then reset the source: Kafka then gets what was written "
    "since the position only by a backfill"
)
_TEXT: Final = "Correct the row's text"
_VALUE: Final = "Correct the row's value, or the publication's row filter"


def is_unreadable(error: psycopg.Error) -> bool:
    """Return whether the change that is being decoded fails so in every try.

    This holds behind the stream's begin only: before, it is a parameter's value.
    """
    state = error.sqlstate or ""
    return state.startswith(_DATA) and state != _PARAMETER


def stop(error: psycopg.Error, received: Lsn) -> HistoryError:
    """Make the error that ends the stream; `received` is the last LSN that came."""
    text = (without_values(error) or "no words").splitlines()[0]
    advice = _TEXT if error.sqlstate in _NO_UTF8 else _VALUE
    return HistoryError(
        f"streaming: a change after {show(received)} cannot be sent, because the "
        f"server cannot print or filter a row in it: {text} ({error.sqlstate})",
        hint=_ADVICE.format(advice),
        repair=RESET,
    )
