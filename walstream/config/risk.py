"""What a configuration gave up: repeated at each start and by `walstream status`."""

from collections.abc import Mapping
from typing import Final

RISKS: Final[Mapping[str, str]] = {
    "insecure": "connections are not protected by verified TLS",
    "at_most_once": "records may be lost: the producer's properties allow it",
}


def risks(part: object) -> dict[str, str]:
    """Say what a source or a sink gave up, by the key that says so."""
    return {key: what for key, what in RISKS.items() if getattr(part, key, False)}
