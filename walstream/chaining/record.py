"""What a record says of itself, as far as passing it on needs it: pure."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from walstream.formats import event, op

SOURCE_HEADER: Final = "walstream-source"
_AHEAD_MS: Final = 30 * 60 * 1000  # half of what brokers allow by default

Table = tuple[str, str]
"""Schema and name; the schema is "" where the format names none."""

Header = tuple[str, bytes | None]


def _of_op(value: bytes) -> Table:
    table = op.decode(value).table
    return table.schema, table.name


def _of_event(value: bytes) -> Table:
    return "", event.decode(value).table


READERS: Final[Mapping[str, Callable[[bytes], Table]]] = {
    "op": _of_op,
    "event": _of_event,
}
"""By format: name the table of a value; raise WalstreamError for anything else."""


def source_in(headers: Sequence[Header]) -> str | None:
    """Find where a producer said that its records come from."""
    for name, text in headers:
        if name == SOURCE_HEADER and text is not None:
            return text.decode(errors="replace")
    return None


def timestamp(given_ms: int | None, now_ms: int, retention_ms: int) -> int:
    """Give the time as it came, unless Kafka would delete or refuse the record.

    One as old as the topic's retention is gone before it is read, one too far ahead
    fails its whole batch. 0: the record has none.
    """
    if given_ms is None:
        return 0
    if given_ms > now_ms + _AHEAD_MS:
        return now_ms
    if retention_ms > 0:
        return max(given_ms, now_ms - retention_ms // 2)
    return given_ms
