"""Choice of the tables that a mirror follows."""

from collections.abc import Callable, Iterable
from typing import Final

from consumer import name_pattern
from consumer.op import Op

_INFORMATION: Final = "information_schema"
_OWN: Final = ("replication_consumer_", "replication_mirror_")


def servers_own(op: Op) -> bool:
    """Return a table of the server itself."""
    return op.table.schema.startswith("pg_") or op.table.schema == _INFORMATION


def matcher(patterns: Iterable[str]) -> Callable[[str, str], bool]:
    """Make the filter of `*` and `?` patterns, as the configuration knows them.

    Tables in which consumers keep their own state are passed over.
    """
    if isinstance(patterns, str):
        patterns = [patterns]
    matches = name_pattern.matcher(patterns)
    return lambda schema, name: (
        not name.startswith(_OWN) and matches(f"{schema}.{name}")
    )
