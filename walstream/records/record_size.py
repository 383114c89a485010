"""A record's size for a broker: key, value, headers and what is around them."""

from typing import Final

RECORD_OVERHEAD: Final = 256  # of a batch and a record around key and value, at most
Headers = list[tuple[str, str | bytes | None]]


def size_of(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """Return its size in bytes, at most."""
    size = len(value or b"") + len(key or b"") + RECORD_OVERHEAD
    for title, text in headers:
        size += len(title)
        if text is not None:
            size += len(text)
    return size
