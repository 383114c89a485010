"""Which tables a mirror follows."""

import re
from collections.abc import Callable, Iterable
from typing import Final

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
    texts = [
        re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
        for pattern in patterns
    ]
    matches = re.compile("|".join(texts) or "(?!)", re.DOTALL).fullmatch
    return lambda schema, name: (
        not name.startswith(_OWN) and bool(matches(f"{schema}.{name}"))
    )
