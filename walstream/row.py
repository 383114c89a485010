"""A row's values: PostgreSQL's text, NULL, or not sent.

NULL and "not sent" are different facts. PostgreSQL leaves out a toasted value that an
UPDATE did not touch (UNCHANGED) and the non-key columns of an old row whose replica
identity is not FULL (OMITTED); neither may ever look like NULL.
"""

from collections.abc import Sequence
from typing import Final


class NotSent:
    """Reason why PostgreSQL sent no value; compared by identity.

    No type that a JSON encoder knows: an encoder that meets one by mistake raises.
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


UNCHANGED: Final = NotSent("UNCHANGED")  # a toasted value that the UPDATE left alone
OMITTED: Final = NotSent("OMITTED")  # a column outside of the replica identity

Value = str | None | NotSent
Row = Sequence[Value]


def any_absent(row: Row | None) -> bool:
    """Return whether a value of this row was not sent."""
    return row is not None and any(isinstance(value, NotSent) for value in row)
