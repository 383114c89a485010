"""Units of size, as configurations and people write them."""

from typing import Final

SIZE_UNITS: Final = {  # in bytes, largest first
    "TiB": 1 << 40,
    "GiB": 1 << 30,
    "MiB": 1 << 20,
    "KiB": 1 << 10,
    "B": 1,
}
