"""Bytes of a record as text, and JSON that cannot drive a terminal."""


def is_text(value: bytes) -> bool:
    """Return UTF-8 from other bytes."""
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def as_text(value: bytes) -> str:
    r"""Decode; bytes that are no UTF-8 are spelt `\xff`."""
    return value.decode("utf-8", "backslashreplace")
