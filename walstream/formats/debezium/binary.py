"""bytea and bit strings, in each form of `binary.handling.mode`."""

from base64 import urlsafe_b64encode
from binascii import b2a_base64
from collections.abc import Callable
from typing import Final

Render = Callable[[str], str]
WriteBytes = Callable[[bytes], str]


def _base64(raw: bytes) -> str:
    return f'"{b2a_base64(raw, newline=False).decode()}"'


def _url_safe(raw: bytes) -> str:
    return f'"{urlsafe_b64encode(raw).decode()}"'


def _hex(raw: bytes) -> str:
    return f'"{raw.hex()}"'


FORMS: Final[dict[str, WriteBytes]] = {
    "bytes": _base64,
    "base64": _base64,
    "base64-url-safe": _url_safe,
    "hex": _hex,
}


def bytea(write: WriteBytes) -> Render:
    r"""Return what writes a bytea, which PostgreSQL prints as `\x00ff`."""

    def render(text: str) -> str:
        return write(bytea_bytes(text))

    return render


def bytea_bytes(text: str) -> bytes:
    """Return what a bytea holds."""
    if text[:2] != "\\x":
        raise ValueError("not a bytea")
    return bytes.fromhex(text[2:])


def opaque(write: WriteBytes, shape: Render | None = None) -> Render:
    """Return what writes the text of a type that has no form of its own."""

    def render(text: str) -> str:
        return write((text if shape is None else shape(text)).encode())

    return render


def bit(text: str) -> str:
    """Write one bit."""
    if text not in {"0", "1"}:
        raise ValueError("not a bit")
    return "true" if text == "1" else "false"


def bits(text: str) -> str:
    """Write a bit string as bytes, the last bit in the first of them."""
    if text.strip("01"):
        raise ValueError("not a bit string")
    number = int(text, 2) if text else 0
    return _base64(number.to_bytes((number.bit_length() + 7) >> 3, "little"))
